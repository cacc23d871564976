// Fetches a queue's tasks for a pool, with a BullMQ Worker, and commits the pool's verdicts.
//
// Invariants:
//   - A task is started only if this process is allowed to start it: the task's lock is recent enough when it is fetched
//     (internals/worker/consumer-worker.ts) and still in the tick in which its handler starts (fetched-jobs.ts), no cancellation of the
//     task is known, and the copy of the cancel rules is fresh (cancel/rule-cache.ts). If a task is fetched while the copy is stale, it
//     waits until the copy is fresh again (fetched-jobs.ts). A task whose cancellation is known is passed to the runner with the field
//     `cancelled`. If the task's data can be decoded, the task ends before its handler starts, with a record whose fencing token is 0.
//   - The task's lock is renewed from the fetch until Redis has confirmed the commit (locks/lock-renewer.ts). If the lock is lost, the
//     pool is notified before another process can start the task, and the attempt is not committed. If the Worker stops trying to
//     commit, for example because it is closing, the renewal ends too. The lock then expires, and the leader requeues the task.
//   - A commit is one of BullMQ's own transitions (processor.ts): `completed` goes to the completed set; `dead`, `cancelled` and
//     `expired` to the failed set; `retrying` and `snoozed` to the delayed set; `requeued` to the head of the queue, with its attempt
//     record in the same script, and without counting an attempt; `lost` does not move the task.
//   - If the pool can't take a task, the task is released: it returns to the head of the queue, and neither an attempt nor a start is
//     counted. The same script restores the queue timeout and wakes a worker. If a release is sent twice, the second one is refused and
//     not reported. A task that has no place in quarantine waits in the delayed set, and then returns to the head of the queue.
//   - The pool is notified of a settled commit once Redis has responded (store/attempt-end.ts). If the response never
//     arrives, the pool is not notified.
//   - Scripts use Redis's time (store/moves.ts). Nothing is fetched until the clock skew has been measured.
//   - `unconfirmed` lists the tasks whose commit Redis has not confirmed. The list is valid until `close`.
//
// The word "pause" has three meanings. A paused queue has BullMQ's `meta.paused` set (fleet/queue-settings.ts), so that the fetch
// script returns no job. A paused pool is one whose consumer the engine has resized to 0. BullMQ's `worker.pause(true)` makes a
// consumer stop fetching, and is called only here, in `resize`.
import type { BreakersOf, Log, PerConcurrencyKey, TaskId } from '@bullpen/contract'
import type { PayloadCodec } from '@bullpen/engine'
import {
  assertTransition,
  type Candidates,
  type Consumer,
  type ConsumerHost,
  type Retention,
  type RunTask,
  stopsRunning,
  type Transitions,
} from '@bullpen/engine/internal'
import type { Job } from 'bullmq'
import { type CancelSubscriber, causeOf, openCancelSubscriber } from './cancel/by-id.ts'
import { createRuleCache, type RuleCache } from './cancel/rule-cache.ts'
import type { SkewMonitor } from './clock/clock-skew.ts'
import { workerConnection } from './connection.ts'
import { createEventBuffer } from './events/event-buffer.ts'
import { eventSender } from './events/event-sender.ts'
import { createFetchHealth, type FetchHealth } from './fetch-health.ts'
import { createFetchedJobs } from './fetched-jobs.ts'
import { ConsumerWorker } from './internals/worker/consumer-worker.ts'
import { prefixOf, queueKeys } from './keys.ts'
import { openRegistration, type Registration } from './leader/registration.ts'
import { storeLimits } from './limits-of-queue.ts'
import { type LockRenewer, openLockRenewer } from './locks/lock-renewer.ts'
import { deathOf, settleRefusedStart } from './processor.ts'
import type { ConnectionWatch } from './redis/connection-watch.ts'
import { addressOf, isConnectionError, knownTrouble } from './redis/outages/outage-reporter.ts'
import { troubleText } from './redis/outages/trouble.ts'
import { throttledLog } from './redis/throttled-log.ts'
import { createAttemptCounts } from './retry-budget/attempt-counts.ts'
import { createSchemaGuard, type SchemaGuard } from './schema.ts'
import { runUntilAnswered } from './scripts/run-until-answered.ts'
import { type Commander, runnerOn } from './scripts/script.ts'
import { backendFactory, IDLE_WAIT_SECONDS } from './store/backend.ts'
import { noteSurvivalScript } from './store/scripts.ts'

export interface LockTimes {
  /** How long a lock lasts if it is not renewed, in ms. */
  readonly lockMs: number
  readonly renewalMs: number
}

/** With these times, a killed process's tasks run again within about 6 s at p99, and a live process does not lose its tasks. */
const LOCK_TIMES: LockTimes = { lockMs: 5_000, renewalMs: 1_000 }

/** How long this process may keep applying the queue's old rate limit after the limit was removed or raised, in ms. */
const RATE_RECHECK_MS = 1_000

const MACHINE_CLOCK = { now: Date.now, measured: Promise.resolve() }

export interface ConsumerOptions {
  readonly queue: string
  /** All of the catalogue's queues, which are checked for data that another version wrote. Defaults to `queue` alone. */
  readonly catalogueQueues?: readonly string[]
  readonly namespace: string
  readonly redisUrl: string
  /** The maximum number of tasks that the consumer holds at once, until it is resized. */
  readonly concurrency: number
  /** The worker's id, for the records of attempts whose process was lost. */
  readonly worker?: string
  /** Decodes inputs, and encodes outputs and the results of steps. By default, payloads are stored unencoded. */
  readonly codec?: PayloadCodec | undefined
  /** The tasks that the consumer may fetch. By default, all tasks of the queue. */
  readonly candidates?: Candidates | undefined
  /** How long the queue's ended tasks are kept. */
  readonly retention: Retention
  /** How long the queue's events are kept, in ms. By default, they are dropped only because of their number. */
  readonly eventsAgeMs?: number | undefined
  /** The limits of the queue's concurrency keys in the catalogue. By default, it has none. */
  readonly keyLimits?: PerConcurrencyKey | undefined
  /** The capacities of the queue's limiters in the catalogue, by the name of the limiter. By default, it has none. */
  readonly capacities?: Readonly<Record<string, number>> | undefined
  /** The queue's circuit breakers in the catalogue. By default, it has none. */
  readonly breakers?: BreakersOf | undefined
  /** How often the consumer registers its queue again for the leader, in ms. Defaults to 60,000. Tests set this. */
  readonly registerEveryMs?: number
  /** Called when a task with follow-ups or compensations has ended, once Redis has confirmed the end. Must not throw or block. */
  readonly onFollowed?: () => void
  /** Called with the number of locks that are about to be lost, because they have not been renewed for half of their duration. */
  readonly onLateLocks?: (locks: number) => void
  /** Called each time that the thread that renews the locks has ended, once for all consumers of the process with the same function. */
  readonly onLockThreadEnded?: (() => void) | undefined
  /** Watches the connection for the process's metrics. By default, nothing is measured. */
  readonly watch?: ConnectionWatch | undefined
  readonly log: Log
  /**
   * The clock that decides when tasks are due and that provides their timestamps. Nothing is fetched until the clock is measured.
   * Defaults to the machine's clock.
   */
  readonly clock?: Pick<SkewMonitor, 'now' | 'measured'>
  /**
   * How long the event loop may be blocked, in ms, before other processes may take over this process's tasks. Defaults to no
   * limit.
   */
  readonly eventLoopStallLimitMs?: number | undefined
  /** The lock times. Shorter times recover a dead process's tasks sooner, but a slow process may lose its tasks. Tests set this. */
  readonly locks?: LockTimes
}

type ConsumerState = 'new' | 'open' | 'running' | 'stopping' | 'closed'

/**
 * A consumer goes from `running` back to `open` when fetching has failed and may be started again. Tasks that were already
 * fetched keep running.
 */
export const CONSUMER_TRANSITIONS: Transitions<ConsumerState> = {
  new: ['open', 'stopping', 'closed'],
  open: ['open', 'running', 'stopping', 'closed'],
  running: ['open', 'stopping', 'closed'],
  stopping: ['stopping', 'closed'],
  closed: [],
}

/** What a consumer owns from its first `open()` on. */
interface Connection {
  readonly redis: Commander
  readonly schema: SchemaGuard
  readonly registration: Registration
}

/** What an open consumer owns in addition to its connection. */
interface Connected {
  readonly worker: ConsumerWorker
  readonly health: FetchHealth
  readonly cancels: CancelSubscriber
  readonly rules: RuleCache
  readonly renewer: LockRenewer
}

/**
 * Creates a consumer. Its connections are opened by `open()`.
 *
 * @throws BullpenError `incompatible_schema`, from `open()`, if an incompatible version of Bullpen wrote the namespace.
 */
export function openConsumer(options: ConsumerOptions, runTask: RunTask, slots: ConsumerHost): Consumer {
  const { queue, catalogueQueues = [queue], namespace, redisUrl, log, clock = MACHINE_CLOCK } = options
  let state: ConsumerState = 'new'
  let concurrency = options.concurrency
  let connection: Connection | undefined
  let connected: Connected | undefined
  let stopRunning = (): void => {}
  const closed = Promise.withResolvers<void>()

  const moveTo = (to: ConsumerState): void => {
    assertTransition(`the consumer of queue '${queue}'`, CONSUMER_TRANSITIONS, state, to)
    state = to
  }

  const defineLimits = async (redis: Commander, { replaces }: { readonly replaces: boolean }): Promise<void> => {
    const { keyLimits, capacities = {}, breakers } = options
    await storeLimits(runnerOn(redis), queueKeys(namespace, queue), { keyLimits, capacities, breakers }, { replaces })
  }

  const openConnection = (): Connection => {
    const redis = workerConnection(redisUrl, log, options.watch)
    redis.on('close', () => {
      if (state === 'running') connected?.health.lost()
    })
    redis.on('ready', () => connected?.health.works())
    const { retention, eventsAgeMs, registerEveryMs } = options
    // The leader removes older tasks and events. The consumer that opens last decides the retention.
    const schema = createSchemaGuard(redis, namespace, catalogueQueues, [{ name: queue, retention, eventsAgeMs }])
    const repeat = async (): Promise<void> => {
      await schema.repeat()
      await defineLimits(redis, { replaces: false })
    }
    const registration = openRegistration({ redis, repeat, log, everyMs: registerEveryMs })
    return { redis, schema, registration }
  }

  const connectAndWait = async ({ redis, schema }: Connection): Promise<void> => {
    await schema.check()
    await defineLimits(redis, { replaces: true })
    // The consumer may have been stopped or closed while Redis was unreachable.
    if (state !== 'open') return
    // If fetching failed earlier, the connections still exist, because they renew the locks of tasks that are still running.
    connected ??= connect(options, redis, concurrency, runTask, slots)
    const { worker, renewer, rules } = connected
    await Promise.all([worker.waitUntilReady(), renewer.ready, rules.untilFresh(), clock.measured])
  }

  return {
    notReady() {
      const trouble = knownTrouble(redisUrl)
      if (trouble !== undefined && trouble !== 'unreachable') return troubleText(addressOf(redisUrl), trouble)
      // Before it is opened, a consumer does not need Redis.
      if (state === 'new') return undefined
      return connection?.redis.status === 'ready' ? undefined : 'Redis is not connected'
    },

    async open() {
      moveTo('open')
      connection ??= openConnection()
      // Some of the promises that opening waits for never settle once the connections are closed.
      await Promise.race([connectAndWait(connection), closed.promise])
    },

    async run() {
      // A drain may have begun while the consumer was opening.
      if (connected === undefined || state !== 'open') return
      moveTo('running')
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      stopRunning = resolve
      connected.worker.onLoopFailed = (err) => {
        if (state === 'running') moveTo('open')
        log.error({ err, queue }, 'fetching failed; the pool will restart the consumer')
        reject(err)
      }
      void connected.worker.run()
      return promise
    },

    resize(to) {
      concurrency = Math.max(1, to)
      const worker = connected?.worker
      if (worker === undefined) return
      if (to === 0) {
        void worker.pause(true)
        return
      }
      // BullMQ only notices a higher concurrency when a task ends or when the worker resumes.
      if (to > worker.concurrency && worker.isRunning()) void worker.pause(true)
      worker.concurrency = to
      if (worker.isPaused()) void worker.resume()
    },

    async stop() {
      if (state === 'closed') return
      moveTo('stopping')
      stopRunning()
      options.candidates?.stop()
      const closing = connected?.worker.close()
      connected?.health.stop()
      await closing
    },

    unconfirmed: () =>
      [...(connected?.worker.unconfirmed.keys() ?? [])].map(({ id = '', name }) => ({ id, task: name })),

    close() {
      if (state === 'closed') return
      moveTo('closed')
      closed.resolve()
      options.candidates?.stop()
      connected?.cancels.close()
      connected?.rules.close()
      connected?.renewer.close()
      connection?.registration.close()
      connection?.redis.disconnect()
    },
  }
}

function connect(
  options: ConsumerOptions,
  redis: Commander,
  concurrency: number,
  runTask: RunTask,
  slots: ConsumerHost,
): Connected {
  const { queue, namespace, redisUrl, codec, retention, eventLoopStallLimitMs, candidates, log } = options
  const { clock = MACHINE_CLOCK, locks = LOCK_TIMES } = options
  const keys = queueKeys(namespace, queue)
  const host = {
    apply: (matching: RuleCache['matching']) => stopMatching(slots, matching),
    hasTasks: () => hasTasks(slots),
  }
  const rules = createRuleCache(redis, keys, host, log)
  const cancels = openCancelSubscriber({
    redisUrl,
    keys,
    cancel: (id, by, retriedAt) => slots.cancel(id, causeOf(by), retriedAt) !== 'not_found',
    onRulesChanged: rules.refresh,
    log,
  })

  const health = createFetchHealth(slots, { queue, log })
  const settled: ConsumerHost['settled'] = (result, refusal) => slots.settled(result, refusal)
  const events = createEventBuffer({ send: eventSender(redis, keys), now: clock.now })
  const { onFollowed } = options
  const commitHost = { settled, codec, attempts: createAttemptCounts(() => performance.now()), events, onFollowed }
  const holdsLock = (job: Job): boolean => worker.unconfirmed.get(job)?.isHeld() ?? false
  const fetched = createFetchedJobs({ redis, keys, runTask, slots, rules, cancels, codec, commitHost, holdsLock })
  // The processor has exactly two parameters. If it had three, BullMQ would create an AbortController per job and handle
  // cancellations itself.
  const processor = (job: Job, token = ''): Promise<unknown> =>
    candidates === undefined
      ? fetched.process(job, token)
      : processCandidate(candidates, job, () => fetched.process(job, token))

  const workerOptions = {
    connection: redis,
    prefix: prefixOf(namespace, queue),
    // BullMQ stores the name with each job that it fetches, for the record of an attempt whose process was lost.
    ...(options.worker !== undefined && { name: options.worker }),
    autorun: false,
    concurrency,
    lockDuration: locks.lockMs,
    skipLockRenewal: true,
    // The leader looks for lost tasks (leader/lost-tasks.ts).
    skipStalledCheck: true,
    drainDelay: IDLE_WAIT_SECONDS,
    maximumRateLimitDelay: RATE_RECHECK_MS,
  }
  const backend = backendFactory({
    now: clock.now,
    retention,
    commands: redis,
    candidates,
    onWoken: rules.prepare,
    onWaitFailed: () => worker.fetchAtOnce(),
  })
  const worker = new ConsumerWorker(queue, processor, workerOptions, backend)
  worker.health = health
  const logError = throttledLog((err: Error, suppressed) => log.error({ err, queue, suppressed }, 'queue error'))
  worker.on('error', (err) => {
    // The outage reporter logs connection errors.
    if (!isConnectionError(err)) logError(err)
  })
  const { base } = keys
  const { onLateLocks: onLate, onLockThreadEnded: onThreadEnded } = options
  const own = { base, eventLoopStallLimitMs, slots: concurrency, onLate, onThreadEnded }
  const renewer = openLockRenewer({ ...locks, ...own, redisUrl, log })
  const onLost = (job: Job, isByStall: boolean): void => {
    const { id = '', attemptsStarted } = job
    slots.lockLost(id as TaskId, attemptsStarted)
    if (isByStall) return
    // This process lives, so an outage of Redis is no death of the task's process. Without the note, the leader counts one.
    const note = { fencingToken: attemptsStarted }
    runUntilAnswered(redis, noteSurvivalScript, { job: keys.job(id) }, note).catch(() => {})
  }
  worker.onRefusedStart = (job) => {
    settleRefusedStart(job, events.death(job, deathOf(job)), (refusal) => {
      if (refusal !== undefined) return
      slots.endedAsDead({ id: job.id ?? '', task: job.name }, deathOf(job))
      onFollowed?.()
    })
  }
  worker.locks = { renewer, redis, base, lockMs: locks.lockMs, now: clock.now, onLost }
  return { worker, health, cancels, rules, renewer }
}

async function processCandidate<T>(candidates: Candidates, { id = '' }: Job, run: () => Promise<T>): Promise<T> {
  candidates.fetched(id as TaskId)
  try {
    return await run()
  } finally {
    candidates.returned(id as TaskId)
  }
}

function hasTasks(slots: ConsumerHost): boolean {
  for (const _ of slots.tasks()) return true
  return false
}

/** Stops the running tasks that a cancel rule matches. */
function stopMatching(slots: ConsumerHost, matching: RuleCache['matching']): void {
  for (const task of slots.tasks()) {
    const rule = matching(task)
    if (rule !== undefined && stopsRunning(rule)) slots.cancel(task.id, { reason: rule.reason, by: rule.by })
  }
}
