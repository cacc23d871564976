import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineSchedule, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const report = defineTask({
  name: 'report.create',
  queue: 'reports',
  input: z.object({ kind: z.enum(['daily', 'weekly']) }),
  output: z.string(),
})
const daily = defineSchedule({
  name: 'daily-report',
  task: report,
  input: { kind: 'daily' },
  cron: '0 3 * * *',
  timeZone: 'Europe/Berlin',
})
const catalogue = defineCatalogue(report, daily)
const handleReport = defineHandler(report, import.meta.url, async ({ input, meta }) => {
  return `${input.kind} report of ${meta['bullpen.schedule']}`
})

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-schedules', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({
  catalogue,
  handlers: { 'report.create': handleReport },
  config: { ...config, port: 0 },
})
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
const { url } = await api.listen()
const { schedules, ...client } = createClient({ transport: http(url, key) })
await worker.start()

// The API and the worker have stored the catalogue's schedules.
while ((await schedules.list().next()).done) await sleep(20)
for await (const { name, source } of schedules.list()) console.log(name, source)

// At any time: store another schedule.
const weekly = { name: 'weekly-report', cron: '30 7 * * MON', timeZone: 'America/New_York', overlap: 'queue' } as const
const { action } = await schedules.put(report, { kind: 'weekly' }, weekly)
console.log(weekly.name, action)

// Run a schedule now.
const { id } = await schedules.run('daily-report')
console.log(await client.result(report, id, { timeout: '20s' }))

await schedules.delete('daily-report')
await schedules.delete('weekly-report')
await api.close()
await worker.drain()
