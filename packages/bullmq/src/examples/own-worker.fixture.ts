// The example of docs/how-to/your-own-bullmq-worker.md: the page quotes what follows this line, and own-worker.test.ts runs it.
import { bullpenBackend, escaped, processor } from '@bullpen/bullmq'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { type Job, Worker } from 'bullmq'
import { z } from 'zod'

const welcome = defineTask({
  name: 'email.welcome',
  queue: 'email',
  input: z.object({ to: z.string(), name: z.string().default('you') }),
  output: z.object({ greeting: z.string() }),
  timeout: '30s',
  retry: { maxAttempts: 3, backoff: { initialDelay: '1s' } },
})
const catalogue = defineCatalogue(welcome)

const handleWelcome = defineHandler(welcome, import.meta.url, async ({ input, log }) => {
  log.info(`writing to ${input.to}`)
  return { greeting: `Hello, ${input.name}` }
})

/** Jobs that are not tasks yet. */
async function processAsBefore(job: Job): Promise<unknown> {
  return `done as always: ${job.name}`
}

const line = (level: string) => (fields: object, msg: string) => console.log(JSON.stringify({ level, ...fields, msg }))
const log = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }

const run = processor(
  catalogue,
  { 'email.welcome': handleWelcome },
  // Every attempt emits events: count them in your metrics.
  { log, sink: (event) => log.debug(event, event.event) },
)

const worker = new Worker(
  'email',
  // Declare all three parameters: BullMQ passes a signal only if the function has three.
  async (job, token, signal) => (catalogue.has(job.name) ? run(job, token, signal) : processAsBefore(job)),
  {
    connection: { url: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379' },
    concurrency: 10,
    lockDuration: 5_000,
    lockRenewTime: 1_000,
    stalledInterval: 1_500,
    maxStalledCount: 10,
  },
  // With BullMQ's own backend, the processor refuses the first job: BullMQ's scripts do not maintain the status of a task.
  bullpenBackend({ catalogue }),
)
worker.on('error', (err) => log.error({ err: String(err) }, 'the queue reported an error'))
worker.on('lockRenewalFailed', (ids) => {
  for (const id of ids) worker.cancelJob(id, 'lock_lost')
})

async function end(code: number, drainMs: number): Promise<void> {
  setTimeout(() => worker.cancelAllJobs('drain'), drainMs)
  setTimeout(() => process.exit(1), drainMs + 10_000)
  await worker.close()
  process.exit(code)
}

function onUncaught(err: unknown): void {
  if (escaped(err) !== 'unattributed') return
  log.error({ err: String(err) }, 'uncaught error outside any attempt')
  void end(70, 0)
}

process.once('SIGTERM', () => void end(0, 20_000))
process.on('uncaughtException', onUncaught).on('unhandledRejection', onUncaught)
