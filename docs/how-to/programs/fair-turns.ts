import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineQueue, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const reports = defineQueue({ name: 'reports', fairness: { weights: { gold: 3 } } })
const render = defineTask({
  name: 'reports.render',
  queue: reports,
  input: z.object({ tenant: z.string() }),
  output: z.object({ tenant: z.string() }),
})
const catalogue = defineCatalogue(render)

const started: string[] = []
const handleRender = defineHandler(render, import.meta.url, ({ input }) => {
  started.push(input.tenant)
  return input
})

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-turns', logLevel: 'silent' } as const
const key = randomUUID()
const handlers = { 'reports.render': handleRender }
const worker = createWorker({ catalogue, handlers, config: { ...config, pools: { reports: 1 }, port: 0 } })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

// The noisy tenant comes first, with as many tasks as the others have together.
const tenants = [...Array<string>(8).fill('noisy'), ...Array<string>(6).fill('gold'), ...Array<string>(2).fill('small')]
const tasks = []
for (const tenant of tenants) tasks.push(await client.enqueue(render, { tenant }, { concurrencyKey: tenant }))

await worker.start()
await Promise.all(tasks.map((task) => task.result({ timeout: '20s' })))
console.log(started.join(' '))

await api.close()
await worker.drain()
