// A pool: the workers of this process on one queue, from the first fetch to the end of the drain.
import { BullpenError, type Log, type PoolState } from '@bullpen/contract'
import {
  assertTransition,
  type Interruption,
  POOL_TRANSITIONS,
  type RunnerHost,
  runAttempt,
  type TakenTask,
} from '@bullpen/engine'
import { type Job, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { workerConnection } from './connection.ts'
import { DEATHS_AT_MOST } from './deaths.ts'
import { prefixOf, queueKeys } from './keys.ts'
import { obey, putBack, taken } from './processor.ts'
import { quietly } from './quietly.ts'
import { backoffStrategy } from './retry-seam.ts'

/** With these a killed process's tasks are in work again in about 6 s at the 99th percentile, without false stalls. */
const LOCK_MS = 5_000
const LOCK_RENEWAL_MS = 1_000
const STALL_CHECK_MS = 1_500

/** What closing takes when nothing runs, and Redis answers. */
const IDLE_CLOSE_MS = 1_000

/** KEYS: job, lock. ARGV: the lock's token, the stacks. Writes nothing where another owner has the task, or nobody. */
const KEEP_STACKS =
  "if redis.call('GET', KEYS[2]) == ARGV[1] then redis.call('HSET', KEYS[1], 'stacktrace', ARGV[2]) end"

export interface PoolOptions {
  readonly queue: string
  readonly namespace: string
  readonly redisUrl: string
  /** How many tasks run at once. */
  readonly concurrency: number
  /** How long a completed task is kept, in ms. Dead ones are kept until somebody decides. */
  readonly keepCompletedMs: number
  readonly host: Omit<RunnerHost, 'queue' | 'poolSignal' | 'interruptible'>
  readonly log: Log
}

export interface DrainLimits {
  readonly drainMs: number
  readonly graceMs: number
  /** Ends the wait for running tasks at once, as a second signal does. */
  readonly hurry: AbortSignal
}

/** What a drain left behind. Empty `abandoned`: all ended well. */
export interface DrainReport {
  readonly queue: string
  readonly abandoned: readonly { readonly id: string; readonly task: string }[]
}

export interface Pool {
  readonly queue: string
  size(): number
  busy(): number
  state(): PoolState
  /** Whether Redis is there at this moment. */
  connected(): boolean
  /** Waits for Redis as long as it takes, then begins to fetch. @throws BullpenError `wrong_state` the second time. */
  start(): Promise<void>
  /**
   * Fetches nothing more; running tasks may finish for `drainMs`; then long ones are signalled and have `graceMs` to end,
   * and go back to the queue without using up an attempt. Resolves at the latest after both. Draining twice is one drain.
   */
  drain(limits: DrainLimits): Promise<DrainReport>
}

/** Opens no connection until it is started. */
export function makePool(options: PoolOptions): Pool {
  const { queue, namespace, redisUrl, concurrency, host, log } = options
  const running = new Set<TakenTask>()
  const interruptible = new Set<Interruption>()
  const closing = new AbortController()
  const runner: RunnerHost = { ...host, queue, poolSignal: closing.signal, interruptible }
  const keys = queueKeys(namespace, queue)
  let state: PoolState = 'NEW'
  let opened: { readonly worker: Worker; readonly redis: Redis } | undefined
  let draining: Promise<DrainReport> | undefined

  const moveTo = (to: PoolState): void => {
    assertTransition(`the pool of queue '${queue}'`, POOL_TRANSITIONS, state, to)
    host.sink({ event: 'pool.state', queue, from: state, to })
    state = to
  }

  const open = (): { worker: Worker; redis: Redis } => {
    const redis = workerConnection(redisUrl, log)
    const keepStacks = async (job: Job, stacks: readonly string[]): Promise<void> => {
      const id = job.id ?? ''
      await redis.eval(KEEP_STACKS, 2, keys.job(id), keys.lock(id), job.token ?? '', JSON.stringify(stacks))
    }
    // Two parameters: with a third, BullMQ makes a controller for each job, and cancels what the engine is to decide.
    const processor = async (job: Job, token = ''): Promise<unknown> => {
      // A fetch may have been under way when the drain began. What it brings is not started but put back.
      if (state !== 'BG_RUNNING') return putBack(job, token)
      const task = taken(job)
      running.add(task)
      try {
        const conclusion = runAttempt(task, runner)
        return await obey(conclusion instanceof Promise ? await conclusion : conclusion, job, token, keepStacks)
      } finally {
        running.delete(task)
      }
    }
    const worker = new Worker(queue, processor, {
      connection: redis,
      prefix: prefixOf(namespace, queue),
      autorun: false,
      concurrency,
      lockDuration: LOCK_MS,
      lockRenewTime: LOCK_RENEWAL_MS,
      stalledInterval: STALL_CHECK_MS,
      maxStalledCount: DEATHS_AT_MOST,
      removeOnComplete: { age: Math.ceil(options.keepCompletedMs / 1_000) },
      settings: { backoffStrategy },
    })
    const failed = quietly((err: Error, dropped) => log.error({ err, queue, dropped }, 'the queue reported an error'))
    worker.on('error', failed)
    return { worker, redis }
  }

  const drain = async ({ drainMs, graceMs, hurry }: DrainLimits): Promise<DrainReport> => {
    const broken = state === 'RECOVER_ERR'
    if (!broken) moveTo('SHUTTING_DOWN')
    if (opened !== undefined) {
      const { worker, redis } = opened
      const finished = worker.close()
      let inTime = await withinMs(finished, Math.min(drainMs, IDLE_CLOSE_MS), hurry)
      // Only running tasks are worth a longer wait: with Redis away the close itself does not come back.
      if (!inTime && running.size > 0) inTime = await withinMs(finished, drainMs - IDLE_CLOSE_MS, hurry)
      if (!inTime && running.size > 0) {
        const reason = new DOMException('the pool drains and its deadline has passed', 'AbortError')
        closing.abort(reason)
        for (const attempt of interruptible) attempt.close('drain')
        await withinMs(finished, graceMs)
      }
      redis.disconnect()
    }
    const abandoned = [...running].map(({ id, task }) => ({ id, task }))
    if (!broken) moveTo(abandoned.length === 0 ? 'SHUTDOWN' : 'TERMINATE_TIMEOUT')
    return { queue, abandoned }
  }

  return {
    queue,
    size: () => concurrency,
    busy: () => running.size,
    state: () => state,
    connected: () => opened?.redis.status === 'ready',
    async start() {
      if (opened !== undefined || state !== 'NEW') {
        throw new BullpenError('wrong_state', `the pool of queue '${queue}' is ${state}; a pool starts once`)
      }
      const { worker, redis } = open()
      opened = { worker, redis }
      await worker.waitUntilReady()
      // A drain may have come while Redis did not.
      if (state !== 'NEW') return
      moveTo('BG_RUNNING')
      worker.run().catch((err: unknown) => {
        log.error({ err, queue }, 'the pool stopped fetching')
        if (state === 'BG_RUNNING') moveTo('RECOVER_ERR')
      })
    },
    drain: (limits) => {
      draining ??= drain(limits)
      return draining
    },
  }
}

/** Whether the promise settled within the time, and before it was hurried. Neither timer nor listener outlives the question. */
async function withinMs(promise: Promise<unknown>, ms: number, hurry?: AbortSignal): Promise<boolean> {
  const { promise: late, resolve } = Promise.withResolvers<false>()
  const giveUp = (): void => resolve(false)
  const timer = setTimeout(giveUp, ms)
  hurry?.addEventListener('abort', giveUp)
  if (hurry?.aborted) giveUp()
  try {
    return await Promise.race([promise.then(() => true), late])
  } finally {
    clearTimeout(timer)
    hurry?.removeEventListener('abort', giveUp)
  }
}
