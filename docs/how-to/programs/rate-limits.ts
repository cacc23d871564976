import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, rateLimited } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const sync = defineTask({
  name: 'crm.sync',
  queue: 'crm',
  input: z.object({ contact: z.int() }),
  output: z.object({ contact: z.int() }),
})
const catalogue = defineCatalogue(sync)

let refusals = 0
const handleSync = defineHandler(sync, import.meta.url, ({ input }) => {
  // The service answered 429, so throttle the whole queue in every worker. Afterwards, this task runs first.
  if (input.contact === 1 && refusals++ === 0) throw rateLimited('1s')
  return { contact: input.contact }
})

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-rates', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({ catalogue, handlers: { 'crm.sync': handleSync }, config: { ...config, port: 0 } })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
await worker.start()
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

/** Syncs the contacts, and returns how long that took, in ms. */
async function timeOf(contacts: readonly number[]): Promise<number> {
  const startedAt = Date.now()
  const tasks = await Promise.all(contacts.map((contact) => client.enqueue(sync, { contact })))
  await Promise.all(tasks.map((task) => task.result({ timeout: '20s' })))
  return Date.now() - startedAt
}

// Allow at most 5 starts per second across all workers of the queue.
await client.command({ action: 'limit', queue: 'crm', rate: { max: 5, per: '1s' } })
const contacts = Array.from({ length: 15 }, (_, i) => i + 100)
console.log('15 starts took at least 2 s:', (await timeOf(contacts)) >= 2_000)

await client.command({ action: 'limit', queue: 'crm', rate: 'none', concurrency: 2 })
console.log('the refused task ran 1 s later:', (await timeOf([1])) >= 1_000, 'refusals:', refusals - 1)

await api.close()
await worker.drain()
