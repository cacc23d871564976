import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const report = defineTask({
  name: 'report.build',
  queue: 'reports',
  input: z.object({ pages: z.int() }),
  output: z.object({ pages: z.int() }),
  timeout: '1s', // limits one attempt
  grace: '200ms', // time from the signal until the slot is freed
  queueTimeout: '10m', // limits the time from ready to the first start
  totalTimeout: '1h', // limits all attempts together
  retry: { maxAttempts: 1 },
})
const catalogue = defineCatalogue(report)

const handleReport = defineHandler(report, import.meta.url, async ({ input, signal, checkpoint, log }) => {
  try {
    for (let page = 1; page <= input.pages; page++) {
      checkpoint() // throws when this attempt has to stop
      await sleep(50, undefined, { signal }) // fetch and database drivers accept the signal, too
    }
    return { pages: input.pages }
  } finally {
    if (signal.aborted) log.info('removing the half-written file')
  }
})

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-timeouts', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({ catalogue, handlers: { 'report.build': handleReport }, config: { ...config, port: 0 } })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
await worker.start()
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

const slow = await client.enqueue(report, { pages: 1_000 })
const timedOut = await slow.waitUntilFinished({ timeout: '20s' })
console.log(timedOut.status, timedOut.error?.code)

const patient = await client.enqueue(report, { pages: 30 }, { timeout: '10s' })
console.log(await patient.result({ timeout: '20s' }))

const unwanted = await client.enqueue(report, { pages: 1_000 }, { timeout: '10m', tags: ['order:17'] })
const { outcome } = await unwanted.cancel({ wait: '20s' })
console.log(outcome)

const scheduled = await client.enqueue(report, { pages: 1 }, { delay: '30m', tags: ['order:17'] })
await client.cancelMany({ queue: 'reports', tag: 'order:17' })
console.log((await scheduled.describe()).status)

await api.close()
await worker.drain()
