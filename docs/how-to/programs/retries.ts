import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, TaskError } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const charge = defineTask({
  name: 'payment.charge',
  queue: 'payments',
  input: z.object({ card: z.string(), cents: z.int() }),
  output: z.object({ receipt: z.string() }),
  timeout: '30s',
  retry: { maxAttempts: 4, backoff: { type: 'exponential', initialDelay: '100ms', maxDelay: '5s' } },
  classify: (error) => (error instanceof RangeError ? { code: 'amount_out_of_range', retryable: false } : undefined),
})
const catalogue = defineCatalogue(charge)

const handleCharge = defineHandler(charge, import.meta.url, async ({ input, attempt }) => {
  if (input.card === 'expired') {
    throw new TaskError('card_expired', 'the card has expired', { retryable: false })
  }
  if (input.card === 'busy' && attempt === 1) {
    throw new TaskError('bank_busy', 'the bank asked us to wait', { retryAfter: '500ms' })
  }
  if (input.cents > 1_000_000) throw new RangeError(`${input.cents} cents is above the limit`)
  if (input.card === 'odd') throw new Error('a bug')
  return { receipt: `charged ${input.cents} in attempt ${attempt}` }
})

const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-retries', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({ catalogue, handlers: { 'payment.charge': handleCharge }, config: { ...config, port: 0 } })
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
await worker.start()
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

async function show(card: string, cents = 4_200): Promise<void> {
  const charged = await client.enqueue(charge, { card, cents })
  const task = await charged.waitUntilFinished({ timeout: '20s' })
  console.log(
    `${card}: ${task.status}, ${task.attempts.map(({ error, outcome }) => error?.code ?? outcome).join(', ')}`,
  )
}

await show('good')
await show('busy')
await show('expired')
await show('good', 2_000_000)
await show('odd')

await api.close()
await worker.drain()
