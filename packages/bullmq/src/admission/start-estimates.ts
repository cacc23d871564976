// Estimates when new tasks will start, from periodic readings of their queues. The engine computes the estimates
// (packages/engine/src/admission/start-estimator.ts).
//
// A queue is read every 2 s while this process enqueues tasks in it, and for a minute after that. An enqueue does not wait for a
// reading.
import type { NewTask } from '@bullpen/engine'
import { type BacklogReading, createStartEstimator } from '@bullpen/engine/internal'
import { type QueueKeys, queueKeys } from '../keys.ts'
import { readTogether } from '../queries/read-together.ts'
import type { Commander } from '../scripts/script.ts'

/** How often a queue is read, in ms. */
const READ_EVERY_MS = 2_000
/** How many times a queue is read after this process has enqueued its last task in the queue. */
const READINGS_AFTER_LAST = 30

export interface StartEstimates {
  /**
   * Estimates when a task will start. Call this method directly before the task is sent to Redis, because it adds the task to the
   * backlog. Does not query Redis.
   */
  expect(task: NewTask): ExpectedStart
  close(): void
}

export interface ExpectedStart {
  /** In ms since 1970, or undefined if the start is unknown. */
  readonly at: number | undefined
  /** Removes the task from the backlog. Call this method if the task was not stored. */
  withdraw(): void
}

export interface StartEstimatesOptions {
  readonly redis: Commander
  readonly namespace: string
  /** How often a queue is read, in ms. Defaults to 2,000. */
  readonly everyMs?: number | undefined
  /** Returns the time of a monotonic clock, in ms. Defaults to `performance.now()`. */
  readonly now?: () => number
}

/** Starts estimating. The timer does not keep the process alive. */
export function openStartEstimates({
  redis,
  namespace,
  everyMs = READ_EVERY_MS,
  now = () => performance.now(),
}: StartEstimatesOptions): StartEstimates {
  const queues = new Map<string, QueueEstimates>()
  const tick = (): void => {
    for (const estimates of queues.values()) estimates.tick(now())
  }
  const timer = setInterval(tick, everyMs).unref()

  return {
    expect(task) {
      let estimates = queues.get(task.queue)
      if (estimates === undefined) {
        estimates = createQueueEstimates(redis, queueKeys(namespace, task.queue), everyMs)
        queues.set(task.queue, estimates)
      }
      return estimates.expect(task, now())
    },
    close: () => clearInterval(timer),
  }
}

interface QueueEstimates {
  expect(task: NewTask, now: number): ExpectedStart
  /** Reads the queue if a reading is due. */
  tick(now: number): void
}

function createQueueEstimates(redis: Commander, keys: QueueKeys, everyMs: number): QueueEstimates {
  const estimator = createStartEstimator()
  let previous: Counts | undefined
  let started = 0
  let sentAt = Number.NEGATIVE_INFINITY
  let enqueuedAt = Number.NEGATIVE_INFINITY
  let isReading = false

  async function read(now: number): Promise<void> {
    sentAt = now
    isReading = true
    const received = estimator.beginReading()
    try {
      const counts = await readCounts(redis, keys)
      started += previous === undefined ? 0 : startsBetween(previous, counts)
      previous = counts
      const { unprioritized, prioritized, isPaused } = counts
      received({ at: now, unprioritized, prioritized, started, isPaused })
    } catch {
      // The outage reporter logs connection errors. Without a recent reading, nothing is estimated.
    } finally {
      isReading = false
    }
  }

  const isUsed = (now: number): boolean => now - enqueuedAt <= READINGS_AFTER_LAST * everyMs
  const isDue = (now: number): boolean => !isReading && now - sentAt >= everyMs / 2

  return {
    expect(task, now) {
      // The first reading is sent before the first task, so that the second one shows whether that task has started.
      if (!isUsed(now) && isDue(now)) void read(now)
      enqueuedAt = now
      const begun = estimator.readingsBegun()
      return { at: estimator.expect(task, now), withdraw: () => estimator.withdraw(task, begun) }
    },
    tick(now) {
      if (isUsed(now) && isDue(now)) void read(now)
    },
  }
}

interface Counts extends Pick<BacklogReading, 'unprioritized' | 'prioritized' | 'isPaused'> {
  /** The number of accepted tasks that are no longer waiting for their first start. */
  readonly left: number
  /** The number of cancelled and expired tasks. */
  readonly endedEarly: number
}

/** Reads a queue's counts, all as of the same moment. Takes constant time and one round trip. */
async function readCounts(redis: Commander, keys: QueueKeys): Promise<Counts> {
  const [totals, meta, ...sizes] = await readTogether(redis, (reads) => {
    reads.hmget(keys.totals, 'accepted').hmget(keys.meta, 'paused')
    reads.llen(keys.wait).zcard(keys.prioritized).zcard(keys.scheduled).zcard(keys.waitingChildren)
    reads.zcard(keys.cancelled).zcard(keys.expired).hget(keys.turnState, 'waiting')
  })
  const [first = 0, prioritized = 0, scheduled = 0, parents = 0, cancelled = 0, expired = 0, inLanes = 0] =
    sizes.map(Number)
  // Which tasks of other keys start before a task is not known, so an estimate counts all of them.
  const unprioritized = first + inLanes
  const accepted = Number((totals as (string | null)[])[0] ?? 0)
  return {
    unprioritized,
    prioritized,
    isPaused: (meta as (string | null)[])[0] != null,
    left: accepted - unprioritized - prioritized - scheduled - parents,
    endedEarly: cancelled + expired,
  }
}

/**
 * Returns the approximate number of tasks that started between two readings. Redis does not count starts, because that would make
 * every start slower. Tasks that were cancelled or have expired are subtracted, because most of them never started. A retry that
 * becomes ready cancels out a start, so the result is too low if many attempts fail.
 */
function startsBetween(from: Counts, to: Counts): number {
  return Math.max(0, to.left - from.left - Math.max(0, to.endedEarly - from.endedEarly))
}
