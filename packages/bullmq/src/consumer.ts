// The feed: brings a pool its tasks from a BullMQ queue, and writes down what is decided about them.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log, TaskId } from '@bullpen/contract'
import {
  type CancelCause,
  type Consumer,
  type ConsumerHost,
  MAX_DEATHS,
  type RunTask,
  stopsRunning,
} from '@bullpen/engine/internal'
import { type Job, WaitingError } from 'bullmq'
import type { Redis } from 'ioredis'
import { countEnded } from './cancel/cancel-rules.ts'
import { type CancelSubscriber, openCancelSubscriber } from './cancel/cancel-subscriber.ts'
import { openRuleCache, type RuleCache } from './cancel/rule-cache.ts'
import type { SkewWatch } from './clock/clock-skew.ts'
import { workerConnection } from './connection.ts'
import { backoffStrategy } from './internals/backoff-strategy.ts'
import { LockedWorker } from './internals/locked-worker.ts'
import { setClock } from './internals/scripts-clock.ts'
import { prefixOf, queueKeys } from './keys.ts'
import { type LockRenewer, openLockRenewer } from './locks/lock-renewer.ts'
import { obey, refuse, taken } from './processor.ts'
import { throttledLog } from './throttled-log.ts'

export interface LockTimes {
  /** How long a lock holds unless it is renewed. */
  readonly lockMs: number
  readonly renewalMs: number
  /** How often tasks without a lock are looked for; one that is seen twice is taken from its process. */
  readonly stallCheckMs: number
}

/** Until a task that was refused goes back, in ms. */
const RELEASE_DELAY_MS = 50

/** How long, in ms, a fleet's rate that was lifted or raised may still be kept here: each looks again so often. */
const RATE_LOOK_MS = 1_000

/** With these a killed process's tasks are in work again in about 6 s at the 99th percentile, without false stalls. */
const LOCK_TIMES: LockTimes = { lockMs: 5_000, renewalMs: 1_000, stallCheckMs: 1_500 }

const MACHINE = { now: Date.now, measured: Promise.resolve() }

export interface ConsumerOptions {
  readonly queue: string
  readonly namespace: string
  readonly redisUrl: string
  /** How many tasks are taken at once, until it is resized. */
  readonly concurrency: number
  /** How long a completed task is kept, in ms. Dead ones are kept until somebody decides. */
  readonly completedRetentionMs: number
  readonly log: Log
  /** What tasks are due and stamped by, once it is measured. Default: the machine's clock. */
  readonly clock?: Pick<SkewWatch, 'now' | 'measured'>
  /** How long the event loop may stand still, in ms, before its tasks are left to other processes. Default: as long as it does. */
  readonly eventLoopStallLimitMs?: number | undefined
  /** Shorter ones find a dead process's tasks sooner, and take tasks from live ones that are slow. For tests. */
  readonly locks?: LockTimes
}

interface Opened {
  readonly worker: LockedWorker
  readonly redis: Redis
  readonly control: CancelSubscriber
  readonly rules: RuleCache
  readonly keeper: LockRenewer
}

/** Opens no connection until it is asked to. */
export function openConsumer(options: ConsumerOptions, work: RunTask, pool: ConsumerHost): Consumer {
  const { queue, namespace, redisUrl, completedRetentionMs, eventLoopStallLimitMs, log } = options
  const { locks = LOCK_TIMES, clock = MACHINE } = options
  let workers = options.concurrency
  let opened: Opened | undefined
  let stopped = (): void => {}

  const connect = (): Opened => {
    const redis = workerConnection(redisUrl, log)
    const keys = queueKeys(namespace, queue)
    const rules = openRuleCache(
      redis,
      keys,
      (covering) => {
        for (const task of pool.tasks()) {
          const rule = covering(task)
          if (rule !== undefined && stopsRunning(rule)) pool.cancel(task.id, { reason: rule.reason, by: rule.by })
        }
      },
      log,
    )
    const control = openCancelSubscriber({
      redisUrl,
      keys,
      cancel: (id) => pool.cancel(id) !== 'not_found',
      onRule: rules.hear,
      log,
    })
    const carryOut = (job: Job, token: string): Promise<unknown> => {
      const task = taken(job, token)
      const rule = rules.covering(task)
      const asked: CancelCause | undefined = control.wasCancelled(task.id) ? { reason: 'cancelled' } : undefined
      const cancelled = rule === undefined ? asked : { reason: rule.reason, by: rule.by }
      return work(
        cancelled === undefined ? task : { ...task, cancelled },
        (conclusion) => {
          if (rule !== undefined && conclusion.verdict.kind === 'cancelled') countEnded(redis, keys, rule)
          return obey(conclusion, job, token)
        },
        // Later, and not at once: who refuses now would be given the same again.
        () => sleep(RELEASE_DELAY_MS).then(() => refuse(job, token)),
      )
    }
    /** Taken while nobody could say whether they may start. */
    const held = new Map<string, { lost: boolean }>()
    const whenFresh = async (job: Job, token: string): Promise<unknown> => {
      const hold = { lost: false }
      held.set(job.id ?? '', hold)
      await rules.fresh()
      held.delete(job.id ?? '')
      // BullMQ leaves a job alone that says it has been moved; and so it may have been, by another owner.
      if (hold.lost || !rules.isFresh()) throw new WaitingError()
      return carryOut(job, token)
    }
    // Two parameters: with a third, BullMQ makes a controller for each job, and cancels what the engine is to decide.
    const processor = (job: Job, token = ''): Promise<unknown> =>
      rules.isFresh() ? carryOut(job, token) : whenFresh(job, token)
    const worker = new LockedWorker(queue, processor, {
      connection: redis,
      prefix: prefixOf(namespace, queue),
      autorun: false,
      concurrency: workers,
      lockDuration: locks.lockMs,
      skipLockRenewal: true,
      stalledInterval: locks.stallCheckMs,
      maxStalledCount: MAX_DEATHS,
      maximumRateLimitDelay: RATE_LOOK_MS,
      removeOnComplete: { age: Math.ceil(completedRetentionMs / 1_000) },
      settings: { backoffStrategy },
    })
    setClock(worker.backend, clock.now)
    const failed = throttledLog((err: Error, suppressed) =>
      log.error({ err, queue, suppressed }, 'the queue reported an error'),
    )
    worker.on('error', failed)
    const { base } = keys
    const keeper = openLockRenewer({
      ...locks,
      redisUrl,
      base,
      eventLoopStallLimitMs,
      slots: workers,
      log,
    })
    const lost = ({ id = '', attemptsStarted }: Job): void => {
      const hold = held.get(id)
      if (hold !== undefined) hold.lost = true
      pool.lockLost(id as TaskId, attemptsStarted)
    }
    worker.keeping = { keeper, redis, base, lockMs: locks.lockMs, now: clock.now, lost }
    return { worker, redis, control, rules, keeper }
  }

  const close = (): void => {
    opened?.control.close()
    opened?.rules.close()
    opened?.keeper.close()
    opened?.redis.disconnect()
  }

  return {
    notReady: () => (opened?.redis.status === 'ready' ? undefined : 'Redis is not connected'),
    async open() {
      // Where only fetching had failed, tasks still run that hold their locks by this connection.
      opened ??= connect()
      const { worker, keeper, rules } = opened
      await Promise.all([worker.waitUntilReady(), keeper.ready, rules.fresh(), clock.measured])
    },
    run() {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      stopped = resolve
      if (opened === undefined) return promise
      opened.worker.onFetchingFailed = (err) => {
        log.error({ err, queue }, 'the pool stopped fetching; it begins again')
        reject(err)
      }
      void opened.worker.run()
      return promise
    },
    resize(to) {
      workers = Math.max(1, to)
      const worker = opened?.worker
      if (worker === undefined) return
      if (to === 0) void worker.pause(true)
      else {
        // BullMQ looks at a greater one only when a task ends, unless it is woken.
        if (to > worker.concurrency && worker.isRunning()) void worker.pause(true)
        worker.concurrency = to
        if (worker.isPaused()) void worker.resume()
      }
    },
    async stop() {
      stopped()
      await opened?.worker.close()
    },
    unconfirmed: () => [...(opened?.worker.held ?? [])].map(({ id = '', name }) => ({ id, task: name })),
    close,
  }
}
