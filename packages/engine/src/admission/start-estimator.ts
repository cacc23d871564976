// Estimates when a new task of a queue will start, from the queue's backlog and the rate at which tasks start.
//
// The backlog and the number of starts are read periodically. Between two readings, the estimator adds the tasks that its own
// process enqueues to the backlog.
//
// The workers' speed can be measured only while tasks wait for them. If the queue was empty for part of the time between two
// readings, the workers may be able to start more tasks than they did. These readings give only a lower bound for the rate, from
// which only short waits are estimated.

import type { NewTask } from '../ports/broker/new-task.ts'

/** What was read about a queue. */
export interface BacklogReading {
  /** The time of the reading, in ms on a monotonic clock. */
  readonly at: number
  /** How many tasks with priority 0 are ready to start. */
  readonly unprioritized: number
  /**
   * How many tasks with other priorities are ready to start. They start after the tasks with priority 0. For a new task with such
   * a priority, all of them count as ahead of it, because Redis does not count tasks by priority.
   */
  readonly prioritized: number
  /** How many tasks have been started so far. Only the difference between two readings matters. */
  readonly started: number
  readonly isPaused: boolean
}

export interface StartRate {
  readonly perMs: number
  /** Whether the workers cannot start tasks any faster. If false, `perMs` is a lower bound. */
  readonly isLimit: boolean
}

/** A task that is about to be enqueued. */
export type UpcomingTask = Pick<NewTask, 'priority' | 'enqueuedAt' | 'delayMs'>

/** How old a reading may be when it is compared with the newest one, in ms. */
const WINDOW_MS = 300_000
/** How old the newest reading may be, in ms. */
const CURRENT_MS = 10_000
/** A rate is measured over at least this many starts and at least this time, if there are enough readings. */
const ENOUGH_STARTS = 30
const ENOUGH_MS = 4_000
/** The longest wait that is estimated from a lower bound for the rate, in ms. */
const MOST_UNCERTAIN_MS = 5_000
/**
 * If tasks are ready but none has started for as long as 100 starts usually take, the workers are assumed to be gone. The other
 * two values limit this time, in ms.
 */
const QUIET_STARTS = 100
const LEAST_QUIET_MS = 10_000
const MOST_QUIET_MS = 60_000

/**
 * Returns the rate at which the workers start tasks. `readings` begins with the oldest reading. Returns undefined if the rate is
 * unknown, because no task has started within five minutes, or because tasks are ready but none has started recently.
 */
export function startRate(readings: readonly BacklogReading[]): StartRate | undefined {
  const newest = readings.at(-1)
  if (newest === undefined) return undefined
  let lowerBound = 0
  let starts = 0
  let spanMs = 0
  /** How long tasks were ready but none started, before the starts that have been counted so far. */
  let idleMs = 0
  let hadAnyBacklog = false
  let lastStartAt: number | undefined
  for (let i = readings.length - 1; i > 0; i--) {
    const [from, to] = [readings[i - 1], readings[i]]
    if (from === undefined || to === undefined || newest.at - from.at > WINDOW_MS) break
    const started = to.started - from.started
    const ms = to.at - from.at
    if (from.isPaused || to.isPaused || ms <= 0) continue
    if (started > 0) lastStartAt ??= to.at
    // If more tasks were ready than have started, the queue was never empty.
    const hadBacklog = ready(from) > started
    if (!hadBacklog) {
      // Starts count only if they came after the last backlog, because only they show that the workers have become faster.
      if (!hadAnyBacklog) lowerBound = Math.max(lowerBound, started / ms)
    } else if (starts < ENOUGH_STARTS || spanMs < ENOUGH_MS) {
      hadAnyBacklog = true
      idleMs += ms
      if (started > 0) {
        starts += started
        spanMs += idleMs
        idleMs = 0
      }
    }
  }
  // Before the first start, there may have been no workers. After only a few starts, that time may also be the usual time between two.
  if (starts < ENOUGH_STARTS) spanMs += idleMs
  const measured = spanMs === 0 ? 0 : starts / spanMs
  const perMs = Math.max(measured, lowerBound)
  if (perMs === 0 || lastStartAt === undefined) return undefined
  const quietMs = Math.min(Math.max(QUIET_STARTS / perMs, LEAST_QUIET_MS), MOST_QUIET_MS)
  if (ready(newest) > 0 && newest.at - lastStartAt > quietMs) return undefined
  return { perMs, isLimit: measured > 0 }
}

function ready({ unprioritized, prioritized }: BacklogReading): number {
  return unprioritized + prioritized
}

export interface StartEstimator {
  /** Call this method just before a reading, and call the returned function with the reading, unless the reading fails. */
  beginReading(): (reading: BacklogReading) => void
  /**
   * Returns when a task that is enqueued now will start, in ms since 1970, rounded up to a second. Returns undefined if that is
   * unknown. `at` is the current time, by the clock of the readings. Adds the task to the backlog.
   */
  expect(task: UpcomingTask, at: number): number | undefined
  /** Returns how many readings have begun. */
  readingsBegun(): number
  /**
   * Removes a task from the backlog because the task was refused, or because another task was returned in its place. `begun` is what
   * {@link readingsBegun} returned when the task was added.
   */
  withdraw(task: UpcomingTask, begun: number): void
}

export function createStartEstimator(): StartEstimator {
  let readings: readonly BacklogReading[] = []
  let rate: StartRate | undefined
  /** What is left at the time `asOf` of the newest reading's backlog and of the tasks that this process has enqueued since then. */
  let backlog = NO_TASKS
  let asOf = 0
  /** The tasks that this process has enqueued since the last reading began. */
  let unread = NO_TASKS
  /** How many readings have begun, and how many had begun when the newest reading that has been received began. */
  let begun = 0
  let received = 0

  /** Returns how long the task will wait for its first start. */
  function waitMs({ priority, delayMs }: UpcomingTask, at: number): number | undefined {
    const newest = readings.at(-1)
    // Without a recent reading, a scheduled task is expected to start when it is due.
    if (newest === undefined || at - newest.at > CURRENT_MS) return delayMs
    if (newest.isPaused) return undefined
    if (rate === undefined) return ready(newest) > 0 ? undefined : delayMs
    backlog = drained(backlog, (at - asOf) * rate.perMs)
    asOf = at
    const backlogMs = (priority === 0 ? backlog.unprioritized : backlog.all) / rate.perMs
    if (!rate.isLimit && backlogMs > Math.max(MOST_UNCERTAIN_MS, delayMs ?? 0)) return undefined
    return Math.max(backlogMs, delayMs ?? 0)
  }

  return {
    beginReading() {
      unread = NO_TASKS
      begun++
      const number = begun
      return (reading) => {
        received = number
        readings = [...readings.filter(({ at }) => reading.at - at <= WINDOW_MS), reading]
        rate = startRate(readings)
        const { unprioritized } = reading
        backlog = { unprioritized: unprioritized + unread.unprioritized, all: ready(reading) + unread.all }
        asOf = reading.at
      }
    },
    expect(task, at) {
      const wait = waitMs(task, at)
      if (task.delayMs === undefined) {
        backlog = withOne(backlog, task)
        unread = withOne(unread, task)
      }
      return wait === undefined ? undefined : Math.ceil((task.enqueuedAt + wait) / 1_000) * 1_000
    },
    readingsBegun: () => begun,
    withdraw(task, begunBefore) {
      if (task.delayMs !== undefined) return
      // A reading that began after the task was added does not contain the task, which was never stored.
      if (begunBefore >= received) backlog = withoutOne(backlog, task)
      if (begunBefore === begun) unread = withoutOne(unread, task)
    },
  }
}

/** Numbers of tasks that are ready to start. Between two readings, these numbers may be fractions. */
interface Backlog {
  readonly unprioritized: number
  readonly all: number
}

const NO_TASKS: Backlog = { unprioritized: 0, all: 0 }

function withOne({ unprioritized, all }: Backlog, { priority }: UpcomingTask): Backlog {
  return { unprioritized: unprioritized + (priority === 0 ? 1 : 0), all: all + 1 }
}

function withoutOne({ unprioritized, all }: Backlog, { priority }: UpcomingTask): Backlog {
  return { unprioritized: Math.max(0, unprioritized - (priority === 0 ? 1 : 0)), all: Math.max(0, all - 1) }
}

/** Returns the backlog that is left after `starts` tasks have started. Tasks without a priority start first. */
function drained({ unprioritized, all }: Backlog, starts: number): Backlog {
  return { unprioritized: Math.max(0, unprioritized - starts), all: Math.max(0, all - starts) }
}
