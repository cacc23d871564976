import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineQueue, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const data = defineQueue({ name: 'data', limits: { permits: { db: 3 } } })
const common = { queue: data, input: z.object({}), output: z.object({}) } as const
const look = defineTask({ ...common, name: 'data.look', permits: { db: 1 } })
const load = defineTask({ ...common, name: 'data.load', permits: { db: 2 }, concurrency: 1 })
const catalogue = defineCatalogue(look, load)

let connections = 0
let most = 0
const use = async (count: number) => {
  connections += count
  most = Math.max(most, connections)
  await sleep(50)
  connections -= count
  return {}
}
const handlers = {
  'data.look': defineHandler(look, import.meta.url, () => use(1)),
  'data.load': defineHandler(load, import.meta.url, () => use(2)),
}

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-permits', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({ catalogue, handlers, config: { ...config, pools: { data: 10 }, port: 0 } })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })
await worker.start()

const tasks = await Promise.all(
  Array.from({ length: 20 }, (_, n) => (n % 4 === 0 ? client.enqueue(load, {}) : client.enqueue(look, {}))),
)
await Promise.all(tasks.map((task) => task.result({ timeout: '20s' })))
console.log('most connections:', most)

// Let no task use the database for a while.
await client.command({ action: 'limit', queue: 'data', permits: { db: 0 } })
const task = await client.enqueue(look, {})
while ((await client.task(task.id)).waitsFor?.kind !== 'permits') await sleep(20)
console.log('waits for', (await client.task(task.id)).waitsFor?.text)
await client.command({ action: 'limit', queue: 'data', permits: { db: 'none' } })
await task.result({ timeout: '20s' })
console.log('completed')

await api.close()
await worker.drain()
