// A pool: the slots of one worker on one queue, from the first fetch to the end of the drain.
import { BullpenError, type PoolState } from '@bullpen/contract'
import { type RunnerHost, runAttempt } from '../attempt/runner.ts'
import type { CloseReason } from '../ports/attempt-result.ts'
import type { RunTask } from '../ports/consumer.ts'
import { settlesWithin } from '../time/with-timeout.ts'
import { ACKNOWLEDGE_MS, runDrain } from './drain.ts'
import { DrainDeadline, type DrainLimits } from './drain-deadline.ts'
import { type DrainReport, DrainTally } from './drain-report.ts'
import { createFetchLoop } from './fetch-loop.ts'
import { type OnlineSet, onlineSet } from './online-set.ts'
import { POOL_TRANSITIONS } from './pool-machine.ts'
import type { Pool, PoolOptions } from './pool-types.ts'
import { Slots } from './slots.ts'
import { assertTransition } from './state-machine.ts'

const MAX_SLOTS = 10_000

/** Opens nothing until it is started. */
export function createPool(options: PoolOptions): Pool {
  const { queue, concurrency, host, maxStuckHandlers, parent } = options
  const closing = new AbortController()
  const drainBegun = new AbortController()
  const crew = new Slots(concurrency, host.clock, () => tellFeed())
  let state: PoolState = 'NEW'
  let paused = false
  let closedBy: CloseReason | undefined
  let online: OnlineSet | undefined
  let opened = false
  let ending:
    | { readonly urgency: DrainDeadline; readonly tally: DrainTally; readonly report: Promise<DrainReport> }
    | undefined

  const runner: RunnerHost = {
    ...host,
    queue,
    poolSignal: closing.signal,
    stuckHandlers: crew.stuckHandlers,
    closedBy: () => closedBy,
  }

  const moveTo = (to: PoolState): void => {
    assertTransition(`the pool of queue '${queue}'`, POOL_TRANSITIONS, state, to)
    const from = state
    state = to
    host.sink({ event: 'pool.state', queue, from, to })
  }
  const runs = (): boolean => state === 'BG_RUNNING' || state === 'ONLINE_RUNNING'
  const isFull = (): boolean => crew.stuckHandlerCount > maxStuckHandlers
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

  const work: RunTask = async (task, obey, refuse) => {
    // A fetch may have been under way when the drain began, or a slot was stopped. What it brings is not started.
    const slot = mayStart() ? crew.take(task) : undefined
    if (slot === undefined) {
      ending?.tally.refused()
      return refuse()
    }
    try {
      const running = runAttempt(task, slot, runner)
      const conclusion = running instanceof Promise ? await running : running
      slot.concluded = true
      ending?.tally.concluded(conclusion, host.clock.monotonic())
      return await obey(conclusion)
    } finally {
      crew.release(slot)
    }
  }
  const feed = options.consumer(work, {
    lockLost: (id, start) => crew.close(id, 'lock_lost', start),
    cancel: (id, cause) => crew.cancel(id, cause),
    tasks: () => crew.running(),
  })

  const fetches = createFetchLoop(feed, {
    clock: host.clock,
    isRunning: runs,
    onFetching() {
      const failed = crew.begin()
      // A slot may have been stopped while there was no feed to tell.
      tellFeed()
      return failed
    },
    onFailed: () => crew.failed(),
    onRestarted: (slots, afterMs) => host.sink({ event: 'slots.restarted', queue, slots, afterMs }),
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

  const drainOnce = async (urgency: DrainDeadline, tally: DrainTally, by: CloseReason): Promise<DrainReport> => {
    const ended = state === 'ONLINE_DONE'
    // The store has not been reached yet: nothing was taken, and nobody need wait for it.
    if (state === 'NEW') urgency.tighten({ drainMs: 0, graceMs: options.graceMs })
    if (!ended) moveTo('SHUTTING_DOWN')
    drainBegun.abort()
    if (by === 'parent_closed') closedBy = by
    if (ended) crew.end('TERMINATING_TASK_CH_CLOSED')
    else if (urgency.light) crew.endAtWork('TERMINATING_TASK_CH_CLOSED')
    else crew.end(by === 'drain' ? 'TERMINATING_STOP_SIGNAL' : 'TERMINATING_PARENT_CTX_CLOSED')
    fetches.end()
    const { clock } = host
    if (opened) await runDrain(urgency, { clock, crew, feed, signal: (graceMs) => signal(by, graceMs) })
    const report = tally.report(queue, crew.running(), opened ? feed.unconfirmed() : [], clock.monotonic())
    if (opened) feed.close()
    // What ran may have been the last of the set.
    if (online !== undefined && !ended) await settlesWithin(clock, online.recheck(), ACKNOWLEDGE_MS.most)
    parent?.removeEventListener('abort', onParent)
    urgency.close()
    if (!ended) moveTo(endState(report, urgency.broken, online !== undefined && online.unfinished().length > 0))
    return report
  }

  const endState = ({ abandoned, unconfirmed }: DrainReport, broken: boolean, incomplete: boolean): PoolState => {
    if (broken) return 'RECOVER_ERR'
    if (abandoned.length > 0 || unconfirmed.length > 0) return 'TERMINATE_TIMEOUT'
    return incomplete ? 'INCOMPLETE_DONE' : 'SHUTDOWN'
  }

  const drain = (limits: DrainLimits, by: CloseReason): Promise<DrainReport> => {
    if (ending !== undefined) {
      ending.urgency.tighten(limits)
      return ending.report
    }
    // Idle slots that waited for what was being fetched.
    const urgency = new DrainDeadline(host.clock, limits, () => ending && crew.end('TERMINATING_STOP_SIGNAL'))
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
      return `the pool of queue '${queue}' takes no tasks: ${crew.stuckHandlerCount} handlers go on after their attempts have ended, ${maxStuckHandlers} are allowed`
    }
    if (crew.size === 0) return `the pool of queue '${queue}' takes no tasks: its slots have been stopped`
    return feed.notReady()
  }

  return {
    queue,
    size: () => crew.size,
    busy: () => crew.busy,
    stuckHandlers: () => crew.stuckHandlerCount,
    state: () => state,
    slots: () => crew.status(),
    notReady,
    status: () => ({
      queue,
      state,
      paused,
      concurrency: crew.size,
      busy: crew.busy,
      stuckHandlers: crew.stuckHandlerCount,
      notReady: paused && runs() ? 'paused' : notReady(),
      slots: crew.status(),
    }),
    async start() {
      await begin('BG_RUNNING')
    },
    async online(tasks, settled) {
      const set = onlineSet(tasks, settled, host.clock)
      await begin('ONLINE_RUNNING', set)
      await set.ended(drainBegun.signal)
      if (state === 'ONLINE_RUNNING') {
        if (set.unfinished().length === 0) moveTo('ONLINE_DONE')
        if (ending === undefined) void drain({ drainMs: ACKNOWLEDGE_MS.most, graceMs: options.graceMs }, 'drain')
      }
      await ending?.report
      return { state, unfinished: set.unfinished() }
    },
    async submit(task) {
      if (state !== 'BG_RUNNING') wrong('it takes no new tasks')
      await host.enqueue(task)
    },
    stopSlot(slot, how) {
      if (!crew.stop(slot, how)) wrong(`its slot ${slot} is ending, or there is none`)
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
      if (!Number.isInteger(to) || to < 1 || to > MAX_SLOTS) {
        throw new BullpenError(
          'invalid_configuration',
          `the pool of queue '${queue}' can not have ${to} slots: it is a whole number from 1 to ${MAX_SLOTS}`,
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
