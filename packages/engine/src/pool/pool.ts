// A pool: the workers of one process on one queue, from the first fetch to the end of the drain.
import { BullpenError, type PoolState } from '@bullpen/contract'
import { type RunnerHost, runAttempt } from '../attempt/runner.ts'
import type { Work } from '../ports/consumer.ts'
import { ACKNOWLEDGE_MS, wind } from './drain.ts'
import { type DrainLimits, Urgency } from './drain-deadline.ts'
import { type DrainReport, DrainTally } from './drain-report.ts'
import { fetching } from './fetch-loop.ts'
import { type OnlineSet, onlineSet } from './online-set.ts'
import { POOL_TRANSITIONS } from './pool-machine.ts'
import type { Pool, PoolOptions } from './pool-types.ts'
import type { CloseReason } from './slot.ts'
import { Crew } from './slots.ts'
import { assertTransition } from './state-machine.ts'
import { withinMs } from './with-timeout.ts'

const MOST_WORKERS = 10_000

/** Opens nothing until it is started. */
export function makePool(options: PoolOptions): Pool {
  const { queue, concurrency, host, maxLeftovers, parent } = options
  const closing = new AbortController()
  const drainBegun = new AbortController()
  const crew = new Crew(concurrency, host.clock, () => tellFeed())
  let state: PoolState = 'NEW'
  let paused = false
  let closedBy: CloseReason | undefined
  let online: OnlineSet | undefined
  let opened = false
  let ending:
    | { readonly urgency: Urgency; readonly tally: DrainTally; readonly report: Promise<DrainReport> }
    | undefined

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
  /** A light drain lets start what was being fetched when it began. */
  const mayStart = (): boolean =>
    !paused &&
    !isFull() &&
    (runs() || (state === 'SHUTTING_DOWN' && closedBy === undefined && ending?.urgency.light === true))
  const tellFeed = (): void => {
    if (opened) feed.resize(runs() && !paused && !isFull() ? crew.size : 0)
  }
  const wrong = (what: string): never => {
    throw new BullpenError('wrong_state', `the pool of queue '${queue}' is ${state}; ${what}`)
  }

  const work: Work = async (task, obey, refuse) => {
    // A fetch may have been under way when the drain began, or a worker was stopped. What it brings is not started.
    const worker = mayStart() ? crew.take(task) : undefined
    if (worker === undefined) {
      ending?.tally.refused()
      return refuse()
    }
    try {
      const running = runAttempt(task, worker, runner)
      const conclusion = running instanceof Promise ? await running : running
      worker.concluded = true
      ending?.tally.concluded(conclusion, host.clock.monotonic())
      return await obey(conclusion)
    } finally {
      crew.release(worker)
    }
  }
  const feed = options.feed(work, {
    lockLost: (id, start) => crew.close(id, 'lock_lost', start),
    cancel: (id, reason) => crew.cancel(id, reason),
    tasks: () => crew.running(),
  })

  const fetches = fetching(feed, {
    clock: host.clock,
    runs,
    begun() {
      const failed = crew.begin()
      // A worker may have been stopped while there was no feed to tell.
      tellFeed()
      return failed
    },
    failed: () => crew.failed(),
    restarted: (workers, afterMs) => host.sink({ event: 'workers.restarted', queue, workers, afterMs }),
  })

  const begin = async (running: 'BG_RUNNING' | 'ONLINE_RUNNING', set?: OnlineSet): Promise<void> => {
    if (opened || state !== 'NEW') wrong('a pool starts once')
    opened = true
    online = set
    await feed.open()
    // A drain may have come while the store did not.
    if (state !== 'NEW') return
    moveTo(running)
    fetches.begin()
  }

  /** The deadline of a drain has passed. */
  const signal = (by: CloseReason, graceMs: number): void => {
    closedBy = by
    crew.end('TERMINATING_PARENT_CTX_CLOSED')
    closing.abort(new DOMException(`the pool ends: ${by}`, 'AbortError'))
    crew.closeAll(by, graceMs)
  }

  const drainOnce = async (urgency: Urgency, tally: DrainTally, by: CloseReason): Promise<DrainReport> => {
    const ended = state === 'ONLINE_DONE'
    // The store has not been reached yet: nothing was taken, and nobody need wait for it.
    if (state === 'NEW') urgency.press({ drainMs: 0, graceMs: options.graceMs })
    if (!ended) moveTo('SHUTTING_DOWN')
    drainBegun.abort()
    if (by === 'parent_closed') closedBy = by
    if (ended) crew.end('TERMINATING_TASK_CH_CLOSED')
    else if (urgency.light) crew.endAtWork('TERMINATING_TASK_CH_CLOSED')
    else crew.end(by === 'drain' ? 'TERMINATING_STOP_SIGNAL' : 'TERMINATING_PARENT_CTX_CLOSED')
    fetches.end()
    const { clock } = host
    if (opened) await wind(urgency, { clock, crew, feed, signal: (graceMs) => signal(by, graceMs) })
    const report = tally.report(queue, crew.running(), opened ? feed.held() : [], clock.monotonic())
    if (opened) feed.close()
    // What ran may have been the last of the set.
    if (online !== undefined && !ended) await withinMs(clock, online.lookAgain(), ACKNOWLEDGE_MS.most)
    parent?.removeEventListener('abort', onParent)
    urgency.close()
    if (!ended) moveTo(endState(report, urgency.broken, online !== undefined && online.left().length > 0))
    return report
  }

  const endState = ({ abandoned, unrecorded }: DrainReport, broken: boolean, incomplete: boolean): PoolState => {
    if (broken) return 'RECOVER_ERR'
    if (abandoned.length > 0 || unrecorded.length > 0) return 'TERMINATE_TIMEOUT'
    return incomplete ? 'INCOMPLETE_DONE' : 'SHUTDOWN'
  }

  const drain = (limits: DrainLimits, by: CloseReason): Promise<DrainReport> => {
    if (ending !== undefined) {
      ending.urgency.press(limits)
      return ending.report
    }
    // Idle workers that waited for what was being fetched.
    const urgency = new Urgency(host.clock, limits, () => ending && crew.end('TERMINATING_STOP_SIGNAL'))
    const tally = new DrainTally(host.clock.monotonic())
    const { promise: report, resolve, reject } = Promise.withResolvers<DrainReport>()
    ending = { urgency, tally, report }
    drainOnce(urgency, tally, by).then(resolve, reject)
    return report
  }

  const onParent = (): void => void drain({ drainMs: 0, graceMs: options.graceMs }, 'parent_closed')
  parent?.addEventListener('abort', onParent, { once: true })
  if (parent?.aborted) onParent()

  const notReady = (): string | undefined => {
    if (!runs()) return `the pool of queue '${queue}' is ${state}`
    if (isFull()) {
      return `the pool of queue '${queue}' takes no tasks: ${crew.leftoverCount} handlers go on after their attempts have ended, ${maxLeftovers} are allowed`
    }
    if (crew.size === 0) return `the pool of queue '${queue}' takes no tasks: its workers have been stopped`
    return feed.missing()
  }

  return {
    queue,
    size: () => crew.size,
    busy: () => crew.busy,
    leftovers: () => crew.leftoverCount,
    state: () => state,
    workers: () => crew.status(),
    notReady,
    status: () => ({
      queue,
      state,
      paused,
      concurrency: crew.size,
      busy: crew.busy,
      leftovers: crew.leftoverCount,
      notReady: paused && runs() ? 'paused' : notReady(),
      workers: crew.status(),
    }),
    async start() {
      await begin('BG_RUNNING')
    },
    async online(tasks, settled) {
      const set = onlineSet(tasks, settled, host.clock)
      await begin('ONLINE_RUNNING', set)
      await set.ended(drainBegun.signal)
      if (state === 'ONLINE_RUNNING') {
        if (set.left().length === 0) moveTo('ONLINE_DONE')
        if (ending === undefined) void drain({ drainMs: ACKNOWLEDGE_MS.most, graceMs: options.graceMs }, 'drain')
      }
      await ending?.report
      return { state, left: set.left() }
    },
    async submit(task) {
      if (state !== 'BG_RUNNING') wrong('it takes no new tasks')
      await host.enqueue(task)
    },
    stopWorker(worker, how) {
      if (!crew.stop(worker, how)) wrong(`its worker ${worker} is ending, or there is none`)
      tellFeed()
    },
    pause() {
      if (!runs()) wrong('it can not be paused')
      paused = true
      tellFeed()
    },
    resume() {
      if (!runs()) wrong('it can not be resumed')
      paused = false
      tellFeed()
    },
    resize(to) {
      if (!Number.isInteger(to) || to < 1 || to > MOST_WORKERS) {
        throw new BullpenError(
          'invalid_configuration',
          `the pool of queue '${queue}' can not have ${to} workers: it is a whole number from 1 to ${MOST_WORKERS}`,
        )
      }
      if (state !== 'NEW' && !runs()) wrong('it can not be resized')
      crew.resize(to)
      tellFeed()
    },
    cancel: (id) => crew.cancel(id),
    drain: (limits) => drain(limits, 'drain'),
  }
}
