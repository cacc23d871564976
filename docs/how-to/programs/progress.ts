import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const importRows = defineTask({
  name: 'rows.import',
  queue: 'imports',
  input: z.object({ rows: z.int() }),
  output: z.object({ rows: z.int() }),
  timeout: '1h',
  heartbeatTimeout: '30s', // an attempt without a sign of life for 30 s is timed out
})
const catalogue = defineCatalogue(importRows)

const { promise: seen, resolve: goOn } = Promise.withResolvers<void>()

const handleImport = defineHandler(importRows, import.meta.url, async ({ input, progress, heartbeat }) => {
  await progress(0.5, `row ${input.rows / 2} of ${input.rows}`)
  await seen // gives this program time to look up the task; a real handler would not wait
  for (let row = input.rows / 2; row < input.rows; row++) heartbeat()
  return { rows: input.rows }
})

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-progress', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({ catalogue, handlers: { 'rows.import': handleImport }, config: { ...config, port: 0 } })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
await worker.start()
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

const importing = await client.enqueue(importRows, { rows: 1_000 })
let task = await importing.describe()
while (task.progress === undefined) task = await importing.describe()
console.log(task.status, task.progress)

goOn()
console.log(await importing.result({ timeout: '20s' }))

await api.close()
await worker.drain()
