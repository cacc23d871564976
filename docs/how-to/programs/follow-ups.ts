import { redis } from '@bullpen/bullmq'
import { createClient } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, followUp, TaskError } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const charge = defineTask({ name: 'card.charge', queue: 'payments', input: z.object({ order: z.int() }) })
const receipt = defineTask({ name: 'receipt.send', queue: 'mail', input: z.object({ order: z.int() }) })
const alert = defineTask({ name: 'alert.raise', queue: 'alerts', input: z.object({ order: z.int() }) })
const catalogue = defineCatalogue(charge, receipt, alert)

let followedUp = Promise.withResolvers<void>()
const handlers = {
  'card.charge': defineHandler(charge, import.meta.url, ({ input: { order } }) => {
    if (order === 13) throw new TaskError('declined', 'the card was declined', { retryable: false })
    console.log(`charged order ${order}`)
  }),
  'receipt.send': defineHandler(receipt, import.meta.url, ({ input }) => {
    console.log(`sent receipt ${input.order}`)
    followedUp.resolve()
  }),
  'alert.raise': defineHandler(alert, import.meta.url, ({ input }) => {
    console.log(`raised an alert for order ${input.order}`)
    followedUp.resolve()
  }),
}

const config = { redisUrl: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379', namespace: 'how-to-follow-ups' }
const worker = createWorker({ catalogue, handlers, config: { ...config, logLevel: 'silent', port: 0 } })
await worker.start()
const client = createClient({ transport: redis(config.redisUrl, { catalogue, namespace: config.namespace }) })

for (const order of [7, 13]) {
  followedUp = Promise.withResolvers()
  await client.enqueue(
    charge,
    { order },
    { onSuccess: [followUp(receipt, { order })], onFailure: [followUp(alert, { order }, { priority: 1 })] },
  )
  await followedUp.promise
}

await client.close()
await worker.drain()
