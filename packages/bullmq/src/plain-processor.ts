// The processor for teams that keep a BullMQ Worker of their own: each job is one attempt, run as a pool would run it.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { BullpenError, type Catalogue, type Handlers, type Log, type Resources } from '@bullpen/contract'
import type { EventSink, Middleware, NewTask } from '@bullpen/engine'
import {
  clockFrom,
  createRegistry,
  DEFAULT_TIMEOUTS,
  type Isolator,
  type RunnerHost,
  runAttempt,
  Slot,
  type Timeouts,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { type Job, UnrecoverableError } from 'bullmq'
import { attemptContext } from './attempt-context.ts'
import { AttemptFailed } from './internals/backoff-strategy.ts'
import { fetchedForeignJob, isOwnJob, saltedBy } from './internals/foreign-job.ts'
import { obey, taken } from './processor.ts'

export interface ProcessorOptions<R extends Resources> {
  /** What handlers find in `ctx.resources`. Opened and closed by you. */
  readonly resources?: R
  /** Around every attempt; the first is the outermost. */
  readonly middleware?: readonly Middleware<R>[]
  /** In ms, or 'none'; for long tasks whose definition says nothing of them. Default: 5 min to run, 5 s of grace. */
  readonly limits?: Partial<Timeouts>
  /** Where `ctx.log` writes, each line with the task's fields. Default: nowhere. */
  readonly log?: Log
  /** Hears of every attempt, such as `createTelemetry(…).sink`. Must neither throw nor wait. */
  readonly sink?: EventSink
  /** For tasks that ask for isolation. Opened and closed by you. */
  readonly isolator?: Isolator
  /** The largest output as JSON; a larger one is a panic, `invalid_output`. Default: 262,144. */
  readonly maxOutputBytes?: number
  /** For `ctx.enqueue`, such as `openBroker({ …, admission: 'open' }).enqueue`. Without it, that rejects with `invalid_configuration`. */
  readonly enqueue?: (task: NewTask) => Promise<void>
}

/** A plain BullMQ processor. BullMQ gives a signal only to a function with three parameters: wrap it in another such. */
export type PlainProcessor = (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown>

/** Timers hold no process open: the Worker's connection does while it runs. */
const clock = clockFrom({
  now: Date.now,
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms).unref(),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
})

const PROCESS = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
const NEVER = new AbortController().signal
const OUTPUT_LIMIT_BYTES = 262_144

/**
 * Runs the catalogue's tasks: input and output checked, timed, retried as their contracts say, panics caught. Jobs are
 * Bullpen's own, or any that were added as `queue.add(task, input)`. One processor may serve several Workers.
 *
 * What aborts the job's signal stops a long task as cancelled, for good; `worker.cancelJob(id, 'drain')` hands it back, and
 * `'lock_lost'` leaves it to whoever has it now.
 *
 * @throws BullpenError `invalid_handler`, `isolation_unavailable`.
 */
export function processor<C extends Catalogue, R extends Resources = object>(
  catalogue: C,
  handlers: Handlers<C, R>,
  options: ProcessorOptions<R> = {},
): PlainProcessor {
  const host = hostOf(catalogue, handlers, options)
  const idle: Slot[] = []
  let workers = 0

  return async (job: Job, given: string | undefined, signal: AbortSignal | undefined) => {
    const isOurs = isOwnJob(job)
    const token = given ?? job.token ?? ''
    const task = isOurs ? taken(job, token) : fetchedForeignJob(job, token, host.registry)
    const worker = idle.pop() ?? new Slot(++workers, clock)
    try {
      const running = runAttempt(task, worker, {
        ...host,
        queue: job.queueName,
        ...(!isOurs && { sha256: saltedBy(job) }),
      })
      if (signal !== undefined && worker.interruption !== undefined) follow(signal, worker.interruption)
      const conclusion = running instanceof Promise ? await running : running
      if (conclusion.verdict.kind === 'completed' && !isOurs) return conclusion.verdict.output
      return await obey(conclusion, job, token)
    } catch (thrown) {
      throw thrown instanceof AttemptFailed ? forAnyWorker(thrown, job, task.maxAttempts) : thrown
    } finally {
      idle.push(worker)
    }
  }
}

function hostOf<C extends Catalogue, R extends Resources>(
  catalogue: C,
  handlers: Handlers<C, R>,
  options: ProcessorOptions<R>,
): Omit<RunnerHost, 'queue'> {
  const { middleware = [], isolator, log, sink = () => {}, enqueue = refuseChild } = options
  return {
    registry: createRegistry(catalogue, handlers, {
      middleware,
      limits: { ...DEFAULT_TIMEOUTS, ...options.limits },
      isolator,
    }),
    context: attemptContext,
    clock,
    random: Math.random,
    sink,
    enqueue,
    sha256,
    maxOutputBytes: options.maxOutputBytes ?? OUTPUT_LIMIT_BYTES,
    worker: PROCESS,
    resources: options.resources ?? {},
    logFor: (fields) => logWith(fields, log),
    // What these are for needs a pool: docs/own-worker.md says what that is.
    poolSignal: NEVER,
    closedBy: () => undefined,
    stuckHandlers: { add() {}, delete() {} },
  }
}

/** What is known of the attempt at this moment, for its signal; later the worker may have another. */
function follow(signal: AbortSignal, attempt: NonNullable<Slot['interruption']>): void {
  const end = (): void => {
    const { reason } = signal
    if (reason === 'drain' || reason === 'lock_lost') attempt.close(reason)
    else attempt.stop({ reason: 'cancelled' })
  }
  if (signal.aborted) end()
  else signal.addEventListener('abort', end, { once: true })
}

/**
 * BullMQ decides by the job's options and the error's class. With both set here, the verdict is obeyed whatever backoff
 * the job was added with, and whether the Worker knows it or not. The stored options stay as they were.
 */
function forAnyWorker(failed: AttemptFailed, job: Job, attempts: number): Error {
  const { message, stack = '', cause, delayMs } = failed
  if (delayMs < 0) return Object.assign(new UnrecoverableError(message), { stack, cause })
  job.opts.attempts = attempts
  job.opts.backoff = { type: 'fixed', delay: delayMs }
  return failed
}

async function refuseChild({ task }: NewTask): Promise<never> {
  throw new BullpenError(
    'invalid_configuration',
    `a handler enqueued ${task}; pass \`enqueue\` to processor(), such as that of openBroker`,
  )
}

function logWith(fields: object, log: Log | undefined): Log {
  return {
    debug: (more, message) => log?.debug({ ...fields, ...more }, message),
    info: (more, message) => log?.info({ ...fields, ...more }, message),
    warn: (more, message) => log?.warn({ ...fields, ...more }, message),
    error: (more, message) => log?.error({ ...fields, ...more }, message),
  }
}
