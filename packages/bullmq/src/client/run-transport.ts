// Carries a client's calls about pipelines over Redis. The client plans a run in its own process, as the API does.
import { randomBytes } from 'node:crypto'
import type { Catalogue, TraceContext } from '@bullpen/contract'
import {
  cancelRunSchema,
  ID_RANDOM_BYTES,
  newRunId,
  type RunTransport,
  runId,
  startRunSchema,
  type Try,
} from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import { detailedRunView, planRun, type Run, runErrors, runNotFound, runView } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { afterTime } from './aborts.ts'
import { checkRequest } from './check-request.ts'

export interface RunTransportOptions {
  readonly broker: Pick<Broker, 'runs' | 'find'>
  readonly catalogue: Catalogue
  readonly correlationId: string | undefined
  /** Returns the trace to which the calling code belongs. */
  readonly traceContext: () => TraceContext | undefined
  /** Returns Redis's time, in ms since 1970. */
  readonly now: () => number
  /** Runs a call once, and converts its errors. */
  readonly once: <T>(run: () => Promise<T>, signal: AbortSignal | undefined) => Promise<T>
}

/** The name that is stored for a caller that passes no `by`. */
const CALLER = `client:${process.pid}`
const PAGE_SIZE = 200

export function runTransport({
  broker,
  catalogue,
  correlationId,
  traceContext,
  now,
  once,
}: RunTransportOptions): RunTransport {
  const { runs } = broker
  const call =
    <T>(run: () => Promise<T>): Try<T> =>
    (signal) =>
      once(run, signal)

  const known = (id: string, run: Run | undefined): Run => {
    if (run === undefined) throw runNotFound(runId(id))
    return run
  }

  return {
    start: (request) =>
      call(async () => {
        checkRequest(startRunSchema, request)
        const { id, pipeline, by = CALLER, input, ...settings } = request
        const random = randomBytes(ID_RANDOM_BYTES)
        const plan = {
          ...settings,
          id: newRunId(id),
          by,
          input,
          random,
          now: now(),
          correlationId,
          traceContext: traceContext(),
        }
        return runView((await runs.start(planRun(catalogue.pipeline(pipeline), plan))).run, undefined, sha256)
      }),

    cancel: (id, by) =>
      call(async () => {
        checkRequest(cancelRunSchema, { by })
        return runView(await runs.cancel(runId(id), by ?? CALLER), undefined, sha256)
      }),

    delete: (text) =>
      call(async () => {
        const id = runId(text)
        await runs.delete(id)
        return { id }
      }),

    show: (text, waitMs) => (signal) =>
      once(async () => {
        const id = runId(text)
        const found =
          waitMs === 0 ? await runs.find(id) : await afterTime(waitMs, signal, (end) => runs.waitUntilEnded(id, end))
        const run = known(text, found)
        const output = run.ended?.result === 'completed' ? await runs.output(id) : undefined
        return detailedRunView(run, output, broker.find, sha256)
      }, signal),

    errors: (text, from) =>
      call(async () => {
        const id = runId(text)
        const run = known(text, await runs.find(id))
        const page = { from, limit: PAGE_SIZE }
        return runErrors(run, await runs.errors(id, from, PAGE_SIZE), page, broker.find, sha256)
      }),
  }
}
