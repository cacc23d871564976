// A team's own Queue and Worker on the shared Redis, with processor() in between and one handler for every task.
import { randomUUID } from 'node:crypto'
import { defineCatalogue, defineHandler, defineTask, type TaskContext, type TaskEvent } from '@bullpen/contract'
import {
  type BackendFactory,
  createRedisBackend,
  type Job,
  Queue,
  type RedisQueueBackend,
  Worker,
  type WorkerOptions,
} from 'bullmq'
import { inject, onTestFinished } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from './broker/patient-broker.fixture.ts'
import { prefixOf } from './keys.ts'
import { type PlainProcessor, type ProcessorOptions, processor } from './plain-processor.ts'
import { silent } from './setup.fixture.ts'
import { bullpenBackend } from './store/bullpen-backend.ts'

const schemas = { input: z.object({ n: z.int().default(7) }), output: z.object({ n: z.int() }) }
/** A task that is retried once, after an hour. */
export const slow = defineTask({
  name: 'own.slow',
  queue: 'own',
  timeout: '10s',
  retry: { maxAttempts: 2, backoff: { initialDelay: '1h', maxDelay: '1h', jitter: 0 } },
  ...schemas,
})
/** A task that is retried twice, immediately. */
export const eager = defineTask({
  name: 'own.eager',
  queue: 'own',
  timeout: '10s',
  retry: { maxAttempts: 3, backoff: { initialDelay: '1ms', jitter: 0 } },
  ...schemas,
})
/** An attempt of this task may run for 50 ms only. */
const hurried = defineTask({
  name: 'own.hurried',
  queue: 'own',
  timeout: '50ms',
  retry: { maxAttempts: 3, backoff: { initialDelay: '1ms', jitter: 0 } },
  ...schemas,
})
const brief = defineTask({ name: 'own.brief', queue: 'own', kind: 'short', ...schemas })
const catalogue = defineCatalogue(slow, eager, hurried, brief)

type Handle = (context: TaskContext<typeof slow>) => { n: number } | Promise<{ n: number }>

export interface Settled {
  readonly event: 'completed' | 'failed'
  readonly job: Job
  readonly error?: Error
}

export function ownWorker(handle: Handle, options: ProcessorOptions<object> = {}) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const connection = { url: inject('redisUrl') }
  const events: TaskEvent[] = []
  const run = processor(
    catalogue,
    {
      'own.slow': defineHandler(slow, import.meta.url, handle),
      'own.brief': defineHandler(brief, import.meta.url, handle as never),
      'own.eager': defineHandler(eager, import.meta.url, handle as never),
      'own.hurried': defineHandler(hurried, import.meta.url, handle as never),
    },
    { limits: { graceMs: 50 }, sink: (event) => events.push(event), ...options },
  )
  const base = (name: string) => ({ connection, prefix: prefixOf(namespace, name) })

  const openQueue = (name = 'own', backend: BackendFactory<RedisQueueBackend> = createRedisBackend): Queue => {
    const queue = new Queue(name, base(name), backend)
    onTestFinished(async () => {
      await queue.obliterate({ force: true })
      await queue.close()
    })
    return queue
  }
  return {
    namespace,
    events,
    run,
    ended: () => events.filter((event) => event.event === 'attempt.ended'),
    refused: () => events.filter((event) => event.event === 'attempt.commit_refused'),
    openQueue,
    openBroker() {
      const broker = openPatientBroker({
        redisUrl: connection.url,
        namespace,
        queues: ['own'],
        sizeLimit: 10_000,
        log: silent,
      })
      onTestFinished(() => broker.close())
      return broker
    },
    /** A team's own Worker: only the processor is Bullpen's. `settled()` resolves with the next completed or failed attempt. */
    startWorker(
      more: Partial<WorkerOptions> & {
        queue?: string
        wrapped?: PlainProcessor
        backend?: BackendFactory<RedisQueueBackend>
      } = {},
    ) {
      const { queue = 'own', wrapped = run, backend = bullpenBackend(), ...settings } = more
      const worker = new Worker(queue, wrapped, { ...base(queue), ...settings }, backend)
      const errors: Error[] = []
      worker.on('error', (error) => errors.push(error))
      onTestFinished(() => worker.close(true))
      const unread: Settled[] = []
      const waiting: ((settled: Settled) => void)[] = []
      const onSettled = (settled: Settled): void => {
        const next = waiting.shift()
        if (next === undefined) unread.push(settled)
        else next(settled)
      }
      worker.on('completed', (job) => onSettled({ event: 'completed', job }))
      worker.on('failed', (job, error) => job && onSettled({ event: 'failed', job, error }))
      const settled = (): Promise<Settled> => {
        const next = unread.shift()
        return next === undefined ? new Promise((resolve) => waiting.push(resolve)) : Promise.resolve(next)
      }
      return { worker, errors, settled }
    },
  }
}

/** A handler that runs until its signal aborts. `started` resolves with its context. */
export function listening() {
  const { promise: started, resolve } = Promise.withResolvers<TaskContext<typeof slow>>()
  const handle: Handle = (context) => {
    resolve(context)
    return new Promise((_, reject) => context.signal.addEventListener('abort', () => reject(context.signal.reason)))
  }
  return { started, handle }
}
