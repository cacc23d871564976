import { randomUUID } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, type TaskContext, TaskError } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const order = defineTask({
  name: 'order.complete',
  queue: 'orders',
  input: z.object({ email: z.email(), cents: z.int() }),
  output: z.object({ payment: z.string(), rows: z.int() }),
  retry: { maxAttempts: 3, backoff: { type: 'fixed', initialDelay: '100ms' } },
})
const catalogue = defineCatalogue(order)

/** Stands in for a payment provider, which executes the request of each idempotency key only once. */
class Bank {
  readonly payments = new Map<string, string>()
  requests = 0
  async charge(cents: number, idempotencyKey: string): Promise<string> {
    this.requests++
    const payment = this.payments.get(idempotencyKey) ?? `payment-${this.payments.size + 1} of ${cents}`
    this.payments.set(idempotencyKey, payment)
    return payment
  }
}

interface Resources {
  readonly bank: Bank
  readonly db: DatabaseSync
}

type Context = TaskContext<typeof order, Resources>
const handleOrder = defineHandler(order, import.meta.url, async ({ id, input, attempt, once, resources }: Context) => {
  const { bank, db } = resources

  // A side effect in another system: a step that runs once, with a key that is the same in every attempt of this task.
  const payment = await once('charge', (key) => bank.charge(input.cents, key))

  // A side effect in our own database: a row whose unique key is the task's id.
  db.prepare('insert into orders (task_id, payment) values (?, ?) on conflict (task_id) do nothing').run(id, payment)

  if (attempt < 3) throw new TaskError('mail_down', 'the mail server is down') // after both side effects
  const { rows } = db.prepare('select count(*) as rows from orders where task_id = ?').get(id) as { rows: number }
  return { payment, rows }
})

const bank = new Bank()
const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-effects', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({
  catalogue,
  handlers: { 'order.complete': handleOrder },
  resources: {
    bank: { open: () => bank },
    db: {
      open: () => {
        const db = new DatabaseSync(':memory:')
        db.exec('create table orders (task_id text primary key, payment text not null)')
        return db
      },
      close: (db) => db.close(),
    },
  },
  config: { ...config, port: 0 },
})
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
await worker.start()
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

const task = await client.enqueue(order, { email: 'ann@example.com', cents: 4_200 })
console.log(await task.result({ timeout: '20s' }))
console.log({ requests: bank.requests, attempts: (await task.describe()).attemptsMade })

await api.close()
await worker.drain()
