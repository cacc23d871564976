import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const encode = defineTask({
  name: 'video.encode',
  queue: 'video',
  input: z.object({ seconds: z.number() }),
  output: z.object({ attempt: z.int(), run: z.int() }),
  timeout: '10m',
  retry: { maxAttempts: 1 },
})
const catalogue = defineCatalogue(encode)

const { promise: bothRun, resolve: running } = Promise.withResolvers<void>()
let started = 0

const handleEncode = defineHandler(encode, import.meta.url, async ({ input, signal, attempt, fencingToken }) => {
  if (++started === 2) running()
  await bothRun
  // The first run of the long task does not finish within the drain. Its second run is short.
  await sleep((fencingToken > 1 ? 0.1 : input.seconds) * 1_000, undefined, { signal })
  return { attempt, run: fencingToken }
})

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-drain', logLevel: 'silent' } as const
const key = randomUUID()
const workerConfig = { ...config, port: 0, drainTimeout: '2s', grace: '500ms', terminationGrace: '5s' } as const
const handlers = { 'video.encode': handleEncode }
const oldWorker = createWorker({ catalogue, handlers, config: workerConfig })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
await oldWorker.start()
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

const short = await client.enqueue(encode, { seconds: 0.5 })
const long = await client.enqueue(encode, { seconds: 300 })
await bothRun

// This is what runUntilSignalled does on SIGTERM. Meanwhile, the deploy starts the new worker.
const drained = oldWorker.drain()
const newWorker = createWorker({ catalogue, handlers, config: workerConfig })
await newWorker.start()
const { finished, requeued, abandoned } = await drained
console.log({ finished, requeued, abandoned: abandoned.length })
console.log(await short.result({ timeout: '20s' }))
console.log(await long.result({ timeout: '20s' }))

await api.close()
await newWorker.drain()
