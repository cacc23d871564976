// The processor for teams that keep a BullMQ Worker of their own: each job is one attempt, run as a pool would run it.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { BullpenError, type Catalogue, type Handlers, type Log, type Resources } from '@bullpen/contract'
import type { EventSink, Middleware, NewTask } from '@bullpen/engine'
import {
  type AttemptResult,
  clockFrom,
  createRegistry,
  DEFAULT_TIMEOUTS,
  type FetchedTask,
  InterruptibleRun,
  type Isolator,
  type RunnerHost,
  runAttempt,
  type Timeouts,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { type Job, UnrecoverableError } from 'bullmq'
import { AttemptFailed } from './internals/backoff-strategy.ts'
import { foreignSha256, foreignTask, isBullpenJob } from './internals/foreign-job.ts'
import { commit, toFetchedTask } from './processor.ts'
import { attemptContext } from './uncaught-errors.ts'

export interface ProcessorOptions<R extends Resources> {
  /** `ctx.resources` of the handlers. You open and close them. */
  readonly resources?: R
  /** Wraps every attempt. The first is the outermost. */
  readonly middleware?: readonly Middleware<R>[]
  /** In ms, or 'none'; for long tasks whose definition sets none. Default: 5 min to run, 5 s of grace. */
  readonly limits?: Partial<Timeouts>
  /** Where `ctx.log` writes, each line with the task's fields. Default: nowhere. */
  readonly log?: Log
  /** Called with every event, such as `createTelemetry(…).sink`. Must neither throw nor wait. */
  readonly sink?: EventSink
  /** For tasks that ask for isolation. You open and close it. */
  readonly isolator?: Isolator
  /** The largest output, as JSON. A larger one is a panic, `invalid_output`. Default: 262,144. */
  readonly maxOutputBytes?: number
  /** For `ctx.enqueue`, such as `openBroker({ …, admission: 'open' }).enqueue`. Without it, that rejects with `invalid_configuration`. */
  readonly enqueue?: (task: NewTask) => Promise<void>
}

/** A plain BullMQ processor. BullMQ passes a signal only to a function with three parameters: if you wrap it, keep all three. */
export type PlainProcessor = (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown>

/** Timers do not keep the process alive; the Worker's connection does. */
const clock = clockFrom({
  now: Date.now,
  monotonic: () => performance.now(),
  setTimeout: (callback, ms) => setTimeout(callback, ms).unref(),
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
})

const WORKER_ID = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
const MAX_OUTPUT_BYTES = 262_144

/**
 * Runs the catalogue's tasks: checks input and output, applies timeouts and retries from the definitions, and catches
 * panics. Jobs may be Bullpen's, or added with `queue.add(task, input)`. One processor may serve several Workers.
 *
 * Aborting the job's signal cancels a long task permanently. `worker.cancelJob(id, 'drain')` requeues it, and
 * `worker.cancelJob(id, 'lock_lost')` leaves it to its new owner.
 *
 * @throws BullpenError `invalid_handler`, `isolation_unavailable`.
 */
export function processor<C extends Catalogue, R extends Resources = object>(
  catalogue: C,
  handlers: Handlers<C, R>,
  options: ProcessorOptions<R> = {},
): PlainProcessor {
  const host = hostOf(catalogue, handlers, options)
  return async (job: Job, givenToken: string | undefined, signal: AbortSignal | undefined) => {
    const isBullpens = isBullpenJob(job)
    const token = givenToken ?? job.token ?? ''
    const task = isBullpens ? toFetchedTask(job, token) : foreignTask(job, token, host.registry)
    try {
      const runner = { ...host, queue: job.queueName, ...(!isBullpens && { sha256: foreignSha256(job) }) }
      const result = await runUnderSignal(task, runner, signal)
      if (result.verdict.kind === 'completed' && !isBullpens) return result.verdict.output
      return await commit(result, job, token)
    } catch (thrown) {
      throw thrown instanceof AttemptFailed ? forAnyWorker(thrown, job, task.maxAttempts) : thrown
    }
  }
}

/** A signal that aborted before the start keeps the handler from starting; a later one interrupts a long attempt. */
async function runUnderSignal(
  task: FetchedTask,
  host: RunnerHost,
  signal: AbortSignal | undefined,
): Promise<AttemptResult> {
  const cause = signal?.aborted ? causeOf(signal) : undefined
  const cancelled = cause === 'cancelled' ? { ...task, cancelled: { reason: cause } } : task
  const running = runAttempt(cancelled, host, cause === 'cancelled' ? undefined : cause)
  if (!(running instanceof InterruptibleRun)) return running
  const interrupt = (): void => {
    const reason = signal === undefined ? 'cancelled' : causeOf(signal)
    if (reason === 'cancelled') running.stop({ reason })
    else running.close(reason)
  }
  signal?.addEventListener('abort', interrupt, { once: true })
  try {
    return await running.result
  } finally {
    signal?.removeEventListener('abort', interrupt)
  }
}

function causeOf({ reason }: AbortSignal): 'drain' | 'lock_lost' | 'cancelled' {
  return reason === 'drain' || reason === 'lock_lost' ? reason : 'cancelled'
}

function hostOf<C extends Catalogue, R extends Resources>(
  catalogue: C,
  handlers: Handlers<C, R>,
  options: ProcessorOptions<R>,
): Omit<RunnerHost, 'queue'> {
  const { middleware = [], isolator, log, sink = () => {}, enqueue = rejectChild } = options
  return {
    registry: createRegistry(catalogue, handlers, {
      middleware,
      timeouts: { ...DEFAULT_TIMEOUTS, ...options.limits },
      isolator,
    }),
    context: attemptContext,
    clock,
    random: Math.random,
    sink,
    enqueue,
    sha256,
    maxOutputBytes: options.maxOutputBytes ?? MAX_OUTPUT_BYTES,
    worker: WORKER_ID,
    resources: options.resources ?? {},
    logFor: (fields) => logWith(fields, log),
  }
}

/**
 * BullMQ decides by the job's options and the error's class. Setting both applies the verdict whatever backoff the job was
 * added with, also in a Worker without Bullpen's strategy. The stored options do not change.
 */
function forAnyWorker(failed: AttemptFailed, job: Job, attempts: number): Error {
  const { message, stack = '', cause, delayMs } = failed
  if (delayMs < 0) return Object.assign(new UnrecoverableError(message), { stack, cause })
  job.opts.attempts = attempts
  job.opts.backoff = { type: 'fixed', delay: delayMs }
  return failed
}

async function rejectChild({ task }: NewTask): Promise<never> {
  throw new BullpenError(
    'invalid_configuration',
    `a handler enqueued '${task}', but processor() has no \`enqueue\` option: pass that of openBroker()`,
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
