// Builds the processor for teams that keep their own BullMQ Worker. The processor runs each job as one attempt, as a pool would.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { BullpenError, type Catalogue, type Enqueued, type Handlers, type Log, type Resources } from '@bullpen/contract'
import type { EventSink, Middleware, NewTask, PayloadCodec } from '@bullpen/engine'
import {
  type AttemptResult,
  type Clock,
  type ConsumerHost,
  clockFrom,
  createRegistry,
  DEFAULT_TIMEOUTS,
  emitSettled,
  type FetchedTask,
  InterruptibleRun,
  type Isolator,
  type RunnerHost,
  runAttempt,
  type Timeouts,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import type { Job } from 'bullmq'
import { workersEvents } from './events/workers-events.ts'
import { foreignSha256, foreignTask, isBullpenJob } from './internals/worker/foreign-job.ts'
import { bullpenBackendOf } from './internals/worker/job-scripts.ts'
import { addKeptInput, hasKeptInput } from './internals/worker/kept-input.ts'
import { lackOf, refuse } from './internals/worker/refused-worker.ts'
import { hasLimits, limitsOf } from './limits-of-queue.ts'
import { commit, release, settleWhenAnswered, toFetchedTask } from './processor.ts'
import { createAttemptCounts } from './retry-budget/attempt-counts.ts'
import { attemptContext } from './uncaught-errors.ts'

export interface ProcessorOptions<R extends Resources> {
  /** The resources that handlers find in `ctx.resources`. You open and close them yourself. */
  readonly resources?: R
  /** Functions that wrap every attempt. The first one is the outermost. */
  readonly middleware?: readonly Middleware<R>[]
  /**
   * The limits for long tasks whose definitions do not set them, in ms or 'none'. The default timeout is 5 min, and the default
   * grace period is 5 s.
   */
  readonly limits?: Partial<Timeouts>
  /** The logger that `ctx.log` writes to, with the task's fields in each line. By default, nothing is logged. */
  readonly log?: Log
  /**
   * A function that is called with every event, such as `createTelemetry(…).sink`. It must not throw or block. The event for the
   * end of an attempt is emitted once Redis has responded to the attempt's commit. If the backend is not Redis, Bullpen cannot
   * see the response, and emits the event when the processor returns.
   */
  readonly sink?: EventSink
  /** The isolator for tasks that require isolation. You open and close the isolator yourself. */
  readonly isolator?: Isolator
  /**
   * Decodes the inputs of tasks that Bullpen enqueued, and encodes their outputs and the results of all steps. The data and
   * results of jobs that you add yourself are stored unencoded. By default, all payloads are stored unencoded.
   */
  readonly codec?: PayloadCodec
  /**
   * The maximum size of an output, in bytes of JSON. A larger output makes the attempt panic (`invalid_output`). Defaults to
   * 262,144.
   */
  readonly maxOutputBytes?: number
  /**
   * Stores the tasks that handlers enqueue with `ctx.enqueue`; for example, `openBroker({ …, admission: 'open' }).enqueue`. If
   * this option is omitted, `ctx.enqueue` rejects with `invalid_configuration`.
   */
  readonly enqueue?: (task: NewTask) => Promise<Enqueued>
}

/**
 * A plain BullMQ processor. If you wrap it, keep all three parameters: BullMQ passes a signal only to a function that declares
 * three.
 */
export type PlainProcessor = (job: Job, token?: string, signal?: AbortSignal) => Promise<unknown>

/** Returns the clock of the job's backend. Its timers do not keep the process alive, but the Worker's connection does. */
function clockOf(job: Job): Clock {
  return clockFrom({
    now: bullpenBackendOf(job)?.now ?? Date.now,
    monotonic: () => performance.now(),
    setTimeout: (callback, ms) => setTimeout(callback, ms).unref(),
    clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
  })
}

const WORKER_ID = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
const MAX_OUTPUT_BYTES = 262_144

/**
 * Returns a BullMQ processor that runs the catalogue's tasks: it validates inputs and outputs, applies the timeouts and retries
 * from the definitions, and catches panics. The jobs may have been added by Bullpen or with `queue.add(task, input)`. One
 * processor can serve several Workers.
 *
 * Aborting the job's signal cancels a long task permanently. `worker.cancelJob(id, 'drain')` requeues it, and
 * `worker.cancelJob(id, 'lock_lost')` leaves it to its new owner.
 *
 * The Worker needs the backend of {@link bullpenBackend}, with the catalogue if that limits anything in the queue. Otherwise the
 * processor does not run any task: it returns the job to its queue without counting an attempt, and pauses the Worker, which emits an
 * `error` with the code `invalid_configuration`.
 *
 * @throws BullpenError `invalid_handler` or `isolation_unavailable`.
 */
export function processor<C extends Catalogue, R extends Resources = object>(
  catalogue: C,
  handlers: Handlers<C, R>,
  options: ProcessorOptions<R> = {},
): PlainProcessor {
  const host = hostOf(catalogue, handlers, options)
  const { codec } = options
  const settled: ConsumerHost['settled'] = (result, refusal) => emitSettled(result, refusal, host.sink)
  const events = workersEvents()
  const isLimited = limitedQueues(catalogue)
  const commitHost = { settled, codec, attempts: createAttemptCounts(() => performance.now()), events }
  return async (job: Job, givenToken: string | undefined, signal: AbortSignal | undefined) => {
    const token = givenToken ?? job.token ?? ''
    const lack = lackOf(job, isLimited(job.queueName))
    if (lack !== undefined) return refuse(job, token, lack)
    if (hasKeptInput(job) && !(await addKeptInput(job))) return release(job, token, () => {})
    const isBullpens = isBullpenJob(job)
    const task = isBullpens
      ? toFetchedTask(job, token, codec, events.open(job, token))
      : foreignTask(job, token, codec, host.registry)
    const clock = clockOf(job)
    const runner = { ...host, clock, queue: job.queueName, ...(!isBullpens && { sha256: foreignSha256(job) }) }
    const result = await runUnderSignal(task, runner, signal)
    if (result.verdict.kind !== 'completed' || isBullpens) return commit(result, job, token, commitHost)
    settleWhenAnswered(job, result, token, commitHost)
    return result.verdict.output
  }
}

/**
 * Runs an attempt. If the signal is aborted before the handler starts, the handler is never started. If the signal is aborted
 * later, a long attempt is interrupted.
 */
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
): Omit<RunnerHost, 'queue' | 'clock'> {
  const { middleware = [], isolator, log, sink = () => {}, enqueue = rejectChild } = options
  return {
    registry: createRegistry(catalogue, handlers, {
      middleware,
      timeouts: { ...DEFAULT_TIMEOUTS, ...options.limits },
      isolator,
    }),
    context: attemptContext,
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

/** Returns a function that returns whether the catalogue limits anything in a queue. */
function limitedQueues(catalogue: Catalogue): (queue: string) => boolean {
  const known = new Map<string, boolean>()
  return (queue) => {
    const isLimited = known.get(queue) ?? hasLimits(limitsOf(catalogue, queue))
    known.set(queue, isLimited)
    return isLimited
  }
}

async function rejectChild({ task }: NewTask): Promise<never> {
  throw new BullpenError(
    'invalid_configuration',
    `a handler enqueued '${task}', but processor() has no \`enqueue\` option; pass the \`enqueue\` of openBroker()`,
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
