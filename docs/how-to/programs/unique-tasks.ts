import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const reindex = defineTask({
  name: 'search.reindex',
  queue: 'search',
  input: z.object({ customer: z.int(), revision: z.int() }),
  output: z.object({ revision: z.int() }),
})
const catalogue = defineCatalogue(reindex)
const handleReindex = defineHandler(reindex, import.meta.url, async ({ input }) => ({ revision: input.revision }))

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-unique', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({
  catalogue,
  handlers: { 'search.reindex': handleReindex },
  config: { ...config, port: 0 },
})
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

// Each change of a customer's data asks for a new index. As long as a task waits to start, another one is not needed.
const unique = { key: 'customer-17', until: 'started' } as const
const first = await client.enqueue(reindex, { customer: 17, revision: 1 }, { unique })
const second = await client.enqueue(reindex, { customer: 17, revision: 2 }, { unique })
console.log(first.action, second.action, second.id === first.id)

// The newest input replaces the one that waits, and starts when there has been no change for 200 ms.
const debounced = { delay: '200ms', unique: { ...unique, onConflict: 'replace' } } as const
const third = await client.enqueue(reindex, { customer: 17, revision: 3 }, debounced)
const fourth = await client.enqueue(reindex, { customer: 17, revision: 4 }, debounced)
console.log(third.action, fourth.action, fourth.status)

await worker.start()
console.log(await client.result(reindex, fourth.id, { timeout: '20s' }))

await api.close()
await worker.drain()
