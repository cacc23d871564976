import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineQueue, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const reports = defineQueue({
  name: 'reports',
  limits: { perConcurrencyKey: { concurrency: 2, keys: { gold: { concurrency: 4 } } } },
})
const render = defineTask({
  name: 'reports.render',
  queue: reports,
  input: z.object({ tenant: z.string() }),
  output: z.object({}),
})
const catalogue = defineCatalogue(render)

const running: Record<string, number> = { gold: 0, small: 0 }
const most: Record<string, number> = { gold: 0, small: 0 }
const handleRender = defineHandler(render, import.meta.url, async ({ input: { tenant } }) => {
  const now = (running[tenant] ?? 0) + 1
  running[tenant] = now
  most[tenant] = Math.max(most[tenant] ?? 0, now)
  await sleep(200)
  running[tenant] = (running[tenant] ?? 0) - 1
  return {}
})

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-limits', logLevel: 'silent' } as const
const key = randomUUID()
const handlers = { 'reports.render': handleRender }
const worker = createWorker({ catalogue, handlers, config: { ...config, pools: { reports: 10 }, port: 0 } })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })
await worker.start()

const enqueue = (tenant: string, count: number) =>
  Promise.all(Array.from({ length: count }, () => client.enqueue(render, { tenant }, { concurrencyKey: tenant })))

const tasks = [await enqueue('small', 8), await enqueue('gold', 8)].flat()
await Promise.all(tasks.map((task) => task.result({ timeout: '20s' })))
console.log('most at once:', most)

// Stop a tenant, and let it go on later.
const limit = { action: 'limit', queue: 'reports', concurrencyKey: 'small' } as const
await client.command({ ...limit, concurrency: 0 })
const [stopped] = await enqueue('small', 1)
while (stopped !== undefined && (await client.task(stopped.id)).waitsFor?.kind !== 'concurrency') await sleep(20)
console.log('stopped')
await client.command({ ...limit, concurrency: 'none' })
await stopped?.result({ timeout: '20s' })
console.log('completed')

await api.close()
await worker.drain()
