// An API program that prints its address and the spans that it records. No instrumentation records its HTTP requests.
import { openTelemetry } from '@bullpen/telemetry/opentelemetry'
import { printSpans } from '../../worker/src/traces/span-printer.fixture.ts'
import { tracedCatalogue } from '../../worker/src/traces/traced-worker.fixture.ts'
import { apiConfig, createApi } from './index.ts'

export const API_KEY = 'the-key-of-the-traced-api'

if (process.argv[1] === import.meta.filename) {
  printSpans()
  const config = { ...apiConfig(), port: 0, metricsPort: 0, logLevel: 'silent' } as const
  const api = await createApi({ catalogue: tracedCatalogue, tracing: openTelemetry(), config })
  console.log(`listening on ${(await api.listen()).url}`)
}
