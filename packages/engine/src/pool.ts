// A pool: the workers of one process on one queue, from the first fetch to the end of the drain.
import { BullpenError, type CancelReason, type PoolState, type TaskId } from '@bullpen/contract'
import { Crew, type LocalCancel } from './crew.ts'
import type { Feed, Work } from './feed.ts'
import { type OnlineSet, onlineSet, type Settled } from './online-set.ts'
import { POOL_TRANSITIONS } from './pool-machine.ts'
import type { NewTask, TakenTask } from './ports.ts'
import { type RunnerHost, runAttempt } from './runner.ts'
import { assertTransition } from './state-machine.ts'
import { withinMs } from './within.ts'
import type { CloseReason, WorkerStatus } from './worker.ts'

export interface PoolOptions {
  readonly queue: string
  /** How many tasks run at once. */
  readonly concurrency: number
  readonly host: Omit<RunnerHost, 'queue' | 'poolSignal' | 'leftovers' | 'closedBy'>
  readonly feed: (work: Work, pool: FedPool) => Feed
  /** Handlers that go on after their attempt has ended: with more than these the pool takes no more tasks. */
  readonly maxLeftovers: number
  /** Closed: the pool drains hard, by itself; a drain that is under way waits no longer. */
  readonly parent?: AbortSignal | undefined
  /** For a drain by the parent's end. */
  readonly graceMs: number
}

/** What a feed may tell its pool. */
export interface FedPool {
  /** The lock of this start is gone: another process may have the task by now, and this one may have started it again. */
  lockLost(id: TaskId, start?: number): void
  /** The task is to be cancelled, when it runs here. Default: by somebody's request. */
  cancel(id: TaskId, reason?: CancelReason): LocalCancel
  /** What runs here now. */
  tasks(): readonly TakenTask[]
}

export interface DrainLimits {
  readonly drainMs: number
  readonly graceMs: number
  /** Ends the wait for running tasks at once, as a second signal does. */
  readonly hurry?: AbortSignal | undefined
  /** Nobody knows what is broken in this process: the pool ends as RECOVER_ERR, whatever it leaves. */
  readonly broken?: boolean
}

/** What a drain left behind. Empty `abandoned`: all ended well. */
export interface DrainReport {
  readonly queue: string
  readonly abandoned: readonly { readonly id: string; readonly task: string }[]
}

export interface OnlineReport {
  readonly state: PoolState
  /**
   * Those of the set that have not ended, or that nobody could be asked about. None when the state is ONLINE_DONE, or
   * SHUTDOWN, when the last of them ended during a drain; some when it is INCOMPLETE_DONE.
   */
  readonly left: readonly TaskId[]
}

export interface Pool {
  readonly queue: string
  /** Workers that are not told to end. */
  size(): number
  busy(): number
  /** Handlers that go on after their attempt has ended. */
  leftovers(): number
  state(): PoolState
  workers(): readonly WorkerStatus[]
  /** Undefined: it takes tasks. Otherwise why not. */
  notReady(): string | undefined
  /** Waits for the store as long as it takes, then begins to fetch. @throws BullpenError `wrong_state` the second time. */
  start(): Promise<void>
  /**
   * Runs until these tasks have ended, here or elsewhere, and then ends itself: ONLINE_DONE. A drain, a closed parent, or a
   * task that is not there at all, ends it before: INCOMPLETE_DONE, with what is left.
   *
   * @throws BullpenError `wrong_state` unless the pool is NEW.
   */
  online(tasks: readonly TaskId[], settled: Settled): Promise<OnlineReport>
  /** Enqueues a task to this pool's queue. @throws BullpenError `wrong_state` unless the pool is BG_RUNNING. */
  submit(task: NewTask): Promise<void>
  /** As {@link Crew.stop}. @throws BullpenError `wrong_state` for a worker that is ending, or that there is not. */
  stopWorker(worker: number, how: 'wait' | 'hard'): void
  /** Of a task that runs in this pool. */
  cancel(id: TaskId): LocalCancel
  /**
   * Fetches nothing more; running tasks may finish for `drainMs`; then long ones are signalled and have `graceMs` to end,
   * and go back to the queue without using up an attempt. Resolves at the latest a second after both; an online pool that
   * looks once more at what is left, two. Twice is one drain.
   */
  drain(limits: DrainLimits): Promise<DrainReport>
}

/** What acknowledging takes when nothing runs, and the store answers. */
const ACKNOWLEDGE_MS = { most: 1_000, least: 250 }

/** Between two starts of a feed that fails: doubled from the first to the last; anew once it has run for that long. */
const RESTART = { firstMs: 500, lastMs: 30_000 }

/** Opens nothing until it is started. */
export function makePool(options: PoolOptions): Pool {
  const { queue, concurrency, host, maxLeftovers, parent } = options
  const closing = new AbortController()
  const drainBegun = new AbortController()
  const crew = new Crew(concurrency, host.clock, () => resize())
  let state: PoolState = 'NEW'
  let closedBy: CloseReason | undefined
  let online: OnlineSet | undefined
  let opened = false
  let draining: Promise<DrainReport> | undefined
  let stopRestart = (): void => {}

  const runner: RunnerHost = {
    ...host,
    queue,
    poolSignal: closing.signal,
    leftovers: crew.leftovers,
    closedBy: () => closedBy,
  }

  const moveTo = (to: PoolState): void => {
    assertTransition(`the pool of queue '${queue}'`, POOL_TRANSITIONS, state, to)
    const from = state
    state = to
    host.sink({ event: 'pool.state', queue, from, to })
  }
  const runs = (): boolean => state === 'BG_RUNNING' || state === 'ONLINE_RUNNING'
  const isFull = (): boolean => crew.leftoverCount > maxLeftovers
  const resize = (): void => {
    if (opened) feed.resize(runs() && !isFull() ? crew.size : 0)
  }
  const wrong = (what: string): never => {
    throw new BullpenError('wrong_state', `the pool of queue '${queue}' is ${state}; ${what}`)
  }

  const work: Work = async (task, obey, refuse) => {
    // A fetch may have been under way when the drain began, or a worker was stopped. What it brings is not started.
    const worker = runs() && !isFull() ? crew.take(task) : undefined
    if (worker === undefined) return refuse()
    try {
      const conclusion = runAttempt(task, worker, runner)
      return await obey(conclusion instanceof Promise ? await conclusion : conclusion)
    } finally {
      crew.release(worker)
    }
  }
  const feed = options.feed(work, {
    lockLost: (id, start) => crew.close(id, 'lock_lost', start),
    cancel: (id, reason) => crew.cancel(id, reason),
    tasks: () => crew.tasks(),
  })

  /** Fetches until the drain; a feed that fails is run again after a wait. Returns how many workers had failed. */
  const fetchOn = (failures: number): number => {
    const workers = crew.begin()
    const since = host.clock.monotonic()
    // A worker may have been stopped while there was no feed to tell.
    resize()
    feed.run().catch(() => restart(host.clock.monotonic() - since > RESTART.lastMs ? 0 : failures))
    return workers
  }

  const restart = (failures: number): void => {
    if (!runs()) return
    crew.failed()
    const afterMs = Math.min(RESTART.firstMs * 2 ** failures, RESTART.lastMs)
    const again = (): void => {
      if (!runs()) return
      const workers = fetchOn(failures + 1)
      host.sink({ event: 'workers.restarted', queue, workers, afterMs })
    }
    stopRestart = host.clock.after(afterMs, () => {
      feed.open().then(again, () => restart(failures + 1))
    })
  }

  const begin = async (running: 'BG_RUNNING' | 'ONLINE_RUNNING', set?: OnlineSet): Promise<void> => {
    if (opened || state !== 'NEW') wrong('a pool starts once')
    opened = true
    online = set
    await feed.open()
    // A drain may have come while the store did not.
    if (state !== 'NEW') return
    moveTo(running)
    fetchOn(0)
  }

  /** Workers end, first those that are idle; what is left of the deadline is for acknowledging. */
  const wind = async ({ drainMs, graceMs, hurry }: DrainLimits, by: CloseReason): Promise<void> => {
    const { clock } = host
    const until = clock.monotonic() + drainMs + graceMs
    // What it fails to acknowledge is recovered by others; nobody listens yet when it fails.
    const finished = feed.stop().catch(() => {})
    stopRestart()
    const hurries = AbortSignal.any([hurry, parent].filter((signal) => signal !== undefined))
    if (crew.busy > 0 && !(await withinMs(clock, crew.idle(), drainMs, hurries))) {
      closedBy = by
      crew.end('TERMINATING_PARENT_CTX_CLOSED')
      closing.abort(new DOMException(`the pool ends: ${by}`, 'AbortError'))
      crew.closeAll(by, graceMs)
      await withinMs(clock, crew.idle(), graceMs + ACKNOWLEDGE_MS.least)
    }
    const leftMs = until - clock.monotonic()
    await withinMs(clock, finished, Math.max(ACKNOWLEDGE_MS.least, Math.min(ACKNOWLEDGE_MS.most, leftMs)))
    feed.close()
  }

  const drain = async (limits: DrainLimits, by: CloseReason): Promise<DrainReport> => {
    const ended = state === 'ONLINE_DONE'
    if (!ended) moveTo('SHUTTING_DOWN')
    drainBegun.abort()
    if (by === 'parent_closed') closedBy = by
    crew.end(
      ended
        ? 'TERMINATING_TASK_CH_CLOSED'
        : by === 'drain'
          ? 'TERMINATING_STOP_SIGNAL'
          : 'TERMINATING_PARENT_CTX_CLOSED',
    )
    if (opened) await wind(limits, by)
    // What ran may have been the last of the set.
    if (online !== undefined && !ended) await withinMs(host.clock, online.lookAgain(), ACKNOWLEDGE_MS.most)
    parent?.removeEventListener('abort', onParent)
    const abandoned = crew.tasks().map(({ id, task }) => ({ id, task }))
    if (!ended) moveTo(endState(abandoned.length, limits, online !== undefined && online.left().length > 0))
    return { queue, abandoned }
  }

  const endState = (abandoned: number, { broken }: DrainLimits, incomplete: boolean): PoolState => {
    if (broken) return 'RECOVER_ERR'
    if (abandoned > 0) return 'TERMINATE_TIMEOUT'
    return incomplete ? 'INCOMPLETE_DONE' : 'SHUTDOWN'
  }

  const onParent = (): void => {
    draining ??= drain({ drainMs: 0, graceMs: options.graceMs }, 'parent_closed')
  }
  parent?.addEventListener('abort', onParent, { once: true })
  if (parent?.aborted) onParent()

  return {
    queue,
    size: () => crew.size,
    busy: () => crew.busy,
    leftovers: () => crew.leftoverCount,
    state: () => state,
    workers: () => crew.status(),
    notReady() {
      if (!runs()) return `the pool of queue '${queue}' is ${state}`
      if (isFull()) {
        return `the pool of queue '${queue}' takes no tasks: ${crew.leftoverCount} handlers go on after their attempts have ended, ${maxLeftovers} are allowed`
      }
      if (crew.size === 0) return `the pool of queue '${queue}' takes no tasks: its workers have been stopped`
      return feed.missing()
    },
    async start() {
      await begin('BG_RUNNING')
    },
    async online(tasks, settled) {
      const set = onlineSet(tasks, settled, host.clock)
      await begin('ONLINE_RUNNING', set)
      await set.ended(drainBegun.signal)
      if (state === 'ONLINE_RUNNING') {
        if (set.left().length === 0) moveTo('ONLINE_DONE')
        draining ??= drain({ drainMs: ACKNOWLEDGE_MS.most, graceMs: options.graceMs }, 'drain')
      }
      await draining
      return { state, left: set.left() }
    },
    async submit(task) {
      if (state !== 'BG_RUNNING') wrong('it takes no new tasks')
      await host.enqueue(task)
    },
    stopWorker(worker, how) {
      if (!crew.stop(worker, how))
        wrong(`its worker ${worker} is ending, or there is none; it began with ${concurrency}`)
      resize()
    },
    cancel: (id) => crew.cancel(id),
    drain(limits) {
      draining ??= drain(limits, 'drain')
      return draining
    },
  }
}
