import { redis } from '@bullpen/bullmq'
import { createClient } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, type TaskDefinition, TaskError } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const alert = defineTask({ name: 'alert.raise', queue: 'alerts', input: z.object({ text: z.string() }) })
const importPage = defineTask({
  name: 'orders.import-page',
  queue: 'imports',
  input: z.object({ page: z.int() }),
  output: z.object({ orders: z.int(), isLast: z.boolean() }),
  onSuccess: (followUp) => [
    followUp(
      (): TaskDefinition => importPage,
      ({ input }) => ({ page: input.page + 1 }),
      { when: ({ output }) => !output.isLast },
    ),
  ],
  onFailure: (followUp) => [followUp(alert, ({ input }) => ({ text: `page ${input.page} is missing` }))],
})
const catalogue = defineCatalogue(importPage, alert)

const done = Promise.withResolvers<void>()
const handlers = {
  'orders.import-page': defineHandler(importPage, import.meta.url, ({ input: { page } }) => {
    if (page === 3) throw new TaskError('page_not_found', 'there is no such page', { retryable: false })
    console.log(`imported page ${page}`)
    return { orders: 100, isLast: false }
  }),
  'alert.raise': defineHandler(alert, import.meta.url, ({ input }) => {
    console.log(`alert: ${input.text}`)
    done.resolve()
  }),
}

const config = { redisUrl: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379', namespace: 'how-to-definitions' }
const worker = createWorker({ catalogue, handlers, config: { ...config, logLevel: 'silent', port: 0 } })
await worker.start()
const client = createClient({ transport: redis(config.redisUrl, { catalogue, namespace: config.namespace }) })

await client.enqueue(importPage, { page: 1 })
await done.promise
await client.close()
await worker.drain()
