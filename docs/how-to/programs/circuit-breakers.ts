import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineQueue, defineTask, TaskError } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const mail = defineQueue({
  name: 'mail',
  breakers: { smtp: { minimumCalls: 5, openFor: '1s', failureCodes: ['smtp_421', 'run_timeout'] } },
})
const schemas = { input: z.object({}), output: z.object({}) }
const backoff = { initialDelay: '100ms' } as const
const send = defineTask({
  name: 'mail.send',
  queue: mail,
  dependsOn: ['smtp'],
  retry: { maxAttempts: 5, backoff },
  ...schemas,
})
const render = defineTask({ name: 'mail.render', queue: mail, ...schemas })
const catalogue = defineCatalogue(send, render)

let isDown = true
const handleSend = defineHandler(send, import.meta.url, () => {
  if (isDown) throw new TaskError('smtp_421', 'the mail server is not available')
  return {}
})
const handleRender = defineHandler(render, import.meta.url, () => ({}))

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-breakers', logLevel: 'silent' } as const
const key = randomUUID()
const handlers = { 'mail.send': handleSend, 'mail.render': handleRender }
const worker = createWorker({ catalogue, handlers, config: { ...config, pools: { mail: 1 }, port: 0 } })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })
await worker.start()

const stateOf = async () => (await client.fleet({ queue: 'mail' })).queues[0]?.breakers?.[0]?.state
const messages = await Promise.all(Array.from({ length: 20 }, () => client.enqueue(send, {})))
while ((await stateOf()) === 'closed') await sleep(20)
console.log('the breaker is open')

// The other tasks of the queue go on.
const page = await client.enqueue(render, {})
await page.result({ timeout: '20s' })
console.log('rendered')

isDown = false
await Promise.all(messages.map((message) => message.result({ timeout: '20s' })))
console.log('sent, and', await stateOf())

// Open the breaker by hand, and then let the calls determine its state again.
const breaker = { action: 'breaker', queue: 'mail', service: 'smtp' } as const
await client.command({ ...breaker, to: 'open' })
const message = await client.enqueue(send, {})
while ((await client.task(message.id)).waitsFor?.kind !== 'breaker') await sleep(20)
console.log('waits for', (await client.task(message.id)).waitsFor?.text.replace(/,.*/, ''))
await client.command({ ...breaker, to: 'auto' })
await message.result({ timeout: '20s' })
console.log('sent')

await api.close()
await worker.drain()
