import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, TaskError } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const buildReport = defineTask({
  name: 'report.build',
  queue: 'reports',
  input: z.object({ pages: z.int() }),
  output: z.object({ pages: z.int() }),
  retry: { backoff: { initialDelay: '100ms' } },
})
const catalogue = defineCatalogue(buildReport)

const handleReport = defineHandler(buildReport, import.meta.url, async ({ attempt, input, log, progress }) => {
  if (attempt === 1) throw new TaskError('busy', 'the printer is busy')
  log.info({ pages: input.pages }, 'printing')
  await progress(0.5, 'half of the pages')
  return { pages: input.pages }
})

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-events', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({ catalogue, handlers: { 'report.build': handleReport }, config: { ...config, port: 0 } })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
await worker.start()
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

const report = await client.enqueue(buildReport, { pages: 12 })
for await (const event of report.events()) {
  switch (event.type) {
    case 'progress':
      console.log('progress', event.fraction, event.note)
      break
    case 'log':
      console.log('log', event.level, event.message, event.fields)
      break
    case 'retrying':
      console.log('retrying', event.error?.message)
      break
    case 'ended':
      console.log('ended', event.status)
      break
    default:
      console.log(event.type)
  }
}

await api.close()
await worker.drain()
