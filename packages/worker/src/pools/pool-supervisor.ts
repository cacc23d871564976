// Keeps the pools of a process, one for each queue: started, drained by command, and made anew when they are to work again.
import { BullpenError, type Log } from '@bullpen/contract'
import type { DrainReport, PoolStatus } from '@bullpen/engine'
import type { DrainLimits, Pool } from '@bullpen/engine/internal'
import { logDrainSummary, summarizeDrain } from '../drain-summary.ts'

/** Why a pool is not to work: it was told so itself, or its queue's whole fleet was. */
export interface DrainCause {
  readonly by: 'command' | 'switch'
  /** The command's id. */
  readonly command: string
}

export interface PoolKeeperOptions {
  /** Concurrency by queue. */
  readonly sizes: ReadonlyMap<string, number>
  readonly make: (queue: string, concurrency: number) => Pool
  /** Measures the pool, until what it returns is called. */
  readonly watch: (pool: Pool) => () => void
  readonly log: Log
}

export interface PoolSupervisor {
  readonly queues: readonly string[]
  pool(queue: string): Pool | undefined
  /** Undefined: it is to work. */
  causeOf(queue: string): DrainCause | undefined
  /** Starts all that have not been told otherwise, unless the process ends. `run`: another way to start one; undefined leaves it as it is. */
  start(run?: (pool: Pool) => Promise<unknown> | undefined): Promise<void>
  /** A pool that has not been started is not started; any other is drained. Twice is one drain, as the harsher says. */
  drain(queue: string, limits: DrainLimits, cause: DrainCause): void
  /**
   * Ends a pause, and a drain by command: a pool starts once, so that one which has ended is followed by another; `later`: one
   * that ends yet, too, when it has. Twice is once.
   *
   * @throws BullpenError `wrong_state` when the process ends.
   */
  resume(queue: string): 'now' | 'later'
  /** Holds for the pools that follow, too. @throws BullpenError as {@link Pool.resize}. */
  resize(queue: string, concurrency: number): void
  /** All pools end with the process. Of those that have ended by command already nothing is reported again. */
  end(limits: DrainLimits): Promise<readonly DrainReport[]>
  /** Undefined: each takes tasks, or does not as somebody wished. */
  notReady(): string | undefined
  status(): readonly PoolStatus[]
}

/** One queue's. */
interface Kept {
  readonly queue: string
  pool: Pool
  concurrency: number
  cause: DrainCause | undefined
  phase: 'new' | 'started' | 'draining' | 'drained'
  unwatch: () => void
}

export function createPoolSupervisor({ sizes, make, watch, log }: PoolKeeperOptions): PoolSupervisor {
  const all = new Map<string, Kept>()
  for (const [queue, concurrency] of sizes) {
    const pool = make(queue, concurrency)
    all.set(queue, { queue, pool, concurrency, cause: undefined, phase: 'new', unwatch: watch(pool) })
  }
  let started = false
  let ending: readonly Kept[] | undefined

  const keptOf = (queue: string): Kept => {
    const kept = all.get(queue)
    if (kept !== undefined) return kept
    throw new BullpenError(
      'queue_not_found',
      `this process works ${[...all.keys()].join(', ')}, and no queue '${queue}'`,
    )
  }

  const startAgain = (kept: Kept): void => {
    kept.phase = 'started'
    kept.pool.start().catch((err: unknown) => log.error({ err, queue: kept.queue }, 'a pool did not start again'))
  }

  const renew = (kept: Kept): void => {
    kept.unwatch()
    kept.pool = make(kept.queue, kept.concurrency)
    kept.unwatch = watch(kept.pool)
    startAgain(kept)
  }

  const drained = (kept: Kept, report: DrainReport): void => {
    kept.phase = 'drained'
    if (ending !== undefined) return
    logDrainSummary(log, summarizeDrain([report]), { queue: kept.queue })
    // It was told to work again meanwhile.
    if (kept.cause === undefined) renew(kept)
  }

  return {
    queues: [...all.keys()],
    pool: (queue) => all.get(queue)?.pool,
    causeOf: (queue) => all.get(queue)?.cause,
    async start(run = (pool) => pool.start()) {
      if (ending !== undefined) return
      started = true
      await Promise.all(
        [...all.values()].map((kept) => {
          const running = kept.cause === undefined ? run(kept.pool) : undefined
          if (running !== undefined) kept.phase = 'started'
          return running
        }),
      )
    },
    drain(queue, limits, cause) {
      const kept = keptOf(queue)
      kept.cause = cause
      if (kept.phase === 'new' || kept.phase === 'drained') return
      if (ending !== undefined) {
        void kept.pool.drain(limits)
        return
      }
      const report = kept.pool.drain(limits)
      if (kept.phase === 'draining') return
      kept.phase = 'draining'
      void report.then((done) => drained(kept, done))
    },
    resume(queue) {
      const kept = keptOf(queue)
      if (ending !== undefined) throw new BullpenError('wrong_state', 'the process ends')
      if (kept.cause === undefined && kept.phase !== 'draining') {
        kept.pool.resume()
        return 'now'
      }
      kept.cause = undefined
      if (kept.phase === 'draining') return 'later'
      if (kept.phase === 'drained') renew(kept)
      if (kept.phase === 'new' && started) startAgain(kept)
      return 'now'
    },
    resize(queue, concurrency) {
      const kept = keptOf(queue)
      // One that ends, or has ended, is followed by one of this size.
      if (kept.phase === 'new' || kept.phase === 'started') kept.pool.resize(concurrency)
      kept.concurrency = concurrency
    },
    async end(limits) {
      ending ??= [...all.values()].filter(({ phase }) => phase !== 'drained')
      return Promise.all(ending.map(({ pool }) => pool.drain(limits)))
    },
    notReady: () =>
      [...all.values()]
        .filter(({ cause }) => cause === undefined)
        .map(({ pool }) => pool.notReady())
        .find((why) => why !== undefined),
    status: () =>
      [...all.values()].map(({ pool, cause, concurrency, phase }) => {
        const status = pool.status()
        if (cause === undefined) return status
        const notReady = cause.by === 'command' ? 'drained by command' : "its queue's fleet drains"
        // What it will have when it works again.
        return { ...status, notReady, ...(phase === 'drained' && { concurrency }) }
      }),
  }
}
