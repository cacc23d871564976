// Finds risks in one queue of plain BullMQ, from its facts. Shares are those of the sampled jobs.
import type { JobFacts, Place, QueueFacts } from './facts.ts'
import { age, jobs, megabytes, type Risk } from './risk.ts'

/** How long a job may wait or be late, and how long an active job may have no lock, before that is not just a busy moment. */
const PATIENCE_MS = 60_000
/** How long a job may wait although its queue has workers. */
const LONG_WAIT_MS = 5 * 60_000
/** How long a job may be active. BullMQ has no timeouts. */
const LONG_RUN_MS = 3_600_000
/** How many ended jobs without any removal are worth a warning, and how much memory of theirs is an error. */
const MANY_KEPT = 1_000
const MUCH_KEPT_BYTES = 256 * 2 ** 20
/** The size from which a payload slows every command that reads the job. */
const LARGE_BYTES = 100_000
/** By how much a stream of events may exceed its length, which is approximate. */
const LONG_STREAM = 2
/** The length from which a stream of events takes tens of megabytes. */
const LONG_EVENTS = 50_000
/** The share of failed jobs from which their kind of failure is not an exception. */
const FREQUENT = 0.1
/** The reason with which BullMQ fails a job that has stalled too often. */
const STALLED = /^job stalled more than (?:allowable limit|maxStalledCount)/

type ExamineQueue = (queue: QueueFacts, now: number) => readonly Risk[] | undefined

const of = ({ sample }: QueueFacts, ...places: readonly Place[]): readonly JobFacts[] =>
  sample.filter(({ place }) => places.includes(place))

/** Returns since when the sampled job that has been waiting for the longest time may start. */
function waitingSince(queue: QueueFacts): number | undefined {
  const times = of(queue, 'waiting', 'prioritized').map(({ readyAt }) => readyAt)
  return times.length === 0 ? undefined : Math.min(...times)
}

export const noWorkers: ExamineQueue = (queue, now) => {
  const { workers, counts, overdue } = queue
  if (workers === undefined) return undefined
  const waiting = counts.waiting + counts.prioritized
  if (workers > 0 || waiting + overdue.jobs === 0) return []
  const since = waitingSince(queue)
  const oldest = since === undefined ? '' : `, the oldest for ${age(now - since)}`
  const parts = [
    ...(waiting === 0 ? [] : [`${waitText(waiting)}${oldest}`]),
    ...(overdue.jobs === 0 ? [] : [`${jobs(overdue.jobs, 'delayed')} should have started`]),
  ]
  return [{ severity: 'error', problem: `no worker is connected, but ${parts.join(', and ')}` }]
}

function waitText(count: number): string {
  return `${jobs(count)} ${count === 1 ? 'waits' : 'wait'}`
}

export const longWait: ExamineQueue = (queue, now) => {
  const { isPaused, workers, counts, hasMarker } = queue
  const since = waitingSince(queue)
  if (isPaused || workers === 0 || since === undefined || now - since < LONG_WAIT_MS) return []
  const waiting = counts.waiting + counts.prioritized
  const idle = counts.active > 0 || hasMarker ? '' : '; the marker that wakes idle workers is missing'
  return [
    {
      severity: 'warning',
      problem: `${waitText(waiting)}, the oldest for ${age(now - since)}, with ${jobs(counts.active, 'active')}${idle}`,
    },
  ]
}

export const paused: ExamineQueue = ({ isPaused, counts }) => {
  const waiting = counts.waiting + counts.prioritized
  return isPaused && waiting > 0
    ? [{ severity: 'warning', problem: `the queue is paused, and ${waitText(waiting)}` }]
    : []
}

export const expiredLocks: ExamineQueue = (queue, now) => {
  const sampled = of(queue, 'active')
  const lost = sampled.filter(({ isLocked, startedAt }) => !isLocked && now - (startedAt ?? now) > PATIENCE_MS)
  if (lost.length === 0) return []
  const oldest = Math.min(...lost.map(({ startedAt = now }) => startedAt))
  return [
    {
      severity: 'error',
      problem: `${lost.length} of ${sampled.length} sampled active jobs have no lock; the oldest started ${age(now - oldest)} ago`,
    },
  ]
}

export const longRuns: ExamineQueue = (queue, now) => {
  const sampled = of(queue, 'active')
  const long = sampled.filter(({ isLocked, startedAt = now }) => isLocked && now - startedAt > LONG_RUN_MS)
  if (long.length === 0) return []
  const oldest = Math.min(...long.map(({ startedAt = now }) => startedAt))
  return [
    {
      severity: 'warning',
      problem: `${long.length} of ${sampled.length} sampled active jobs have been running for more than an hour, the longest for ${age(now - oldest)}`,
    },
  ]
}

export const overdueJobs: ExamineQueue = ({ overdue, counts, isPaused, workers }, now) => {
  // Without a worker, the check of the workers reports the jobs.
  if (isPaused || workers === 0 || overdue.jobs === 0 || overdue.firstDueAt === undefined) return []
  const late = age(now - overdue.firstDueAt)
  return [
    {
      severity: 'error',
      problem: `${overdue.jobs} of the ${jobs(counts.delayed, 'delayed')} should have started, the first one ${late} ago`,
    },
  ]
}

export const lateSchedulers: ExamineQueue = ({ nextScheduledAt }, now) =>
  nextScheduledAt === undefined || now - nextScheduledAt < PATIENCE_MS
    ? []
    : [{ severity: 'warning', problem: `the next run of a job scheduler was due ${age(now - nextScheduledAt)} ago` }]

function kept(place: 'completed' | 'failed'): ExamineQueue {
  return (queue, now) => {
    const sampled = of(queue, place)
    const count = queue.counts[place]
    const left = sampled.filter(({ isRemoved }) => !isRemoved)
    if (count < MANY_KEPT || left.length === 0) return []
    const sizes = sampled.flatMap(({ memoryBytes }) => memoryBytes ?? [])
    const bytes = sizes.length === 0 ? undefined : (count * sizes.reduce((sum, size) => sum + size, 0)) / sizes.length
    const size = bytes === undefined ? '' : `, which take about ${megabytes(bytes)}`
    const oldest = Math.min(...sampled.map(({ finishedAt = now }) => finishedAt))
    const share =
      left.length === sampled.length
        ? 'none of the sampled jobs has an option that removes it'
        : `${left.length} of ${sampled.length} sampled jobs have no option that removes them`
    return [
      {
        severity: (bytes ?? 0) >= MUCH_KEPT_BYTES ? 'error' : 'warning',
        problem: `${jobs(count, place)}${size}, the oldest from ${age(now - oldest)} ago; ${share}`,
      },
    ]
  }
}

export const keptCompleted = kept('completed')
export const keptFailed = kept('failed')

export const noRetries: ExamineQueue = (queue) => {
  const sampled = of(queue, 'failed')
  const single = sampled.filter(({ maxAttempts }) => maxAttempts === 1)
  if (single.length === 0 || single.length < sampled.length * FREQUENT) return []
  return [
    {
      severity: 'warning',
      problem: `${single.length} of ${sampled.length} sampled failed jobs (${queue.counts.failed} in all) had a single attempt`,
    },
  ]
}

export const stalledJobs: ExamineQueue = (queue) => {
  const sampled = of(queue, 'failed')
  const stalled = sampled.filter(({ failedReason = '' }) => STALLED.test(failedReason))
  if (stalled.length === 0) return []
  return [
    {
      severity: 'warning',
      problem: `${stalled.length} of ${sampled.length} sampled failed jobs (${queue.counts.failed} in all) failed because they had stalled`,
    },
  ]
}

export const largePayloads: ExamineQueue = ({ sample }) => {
  const large = sample.filter(({ dataBytes, resultBytes }) => Math.max(dataBytes, resultBytes) >= LARGE_BYTES)
  if (large.length === 0) return []
  const most = Math.max(...large.map(({ dataBytes, resultBytes }) => Math.max(dataBytes, resultBytes)))
  return [
    {
      severity: 'warning',
      problem: `${large.length} of ${sample.length} sampled jobs have data or a result of 100 kB or more, the largest ${megabytes(most)}`,
    },
  ]
}

export const longEvents: ExamineQueue = ({ events: { length, max } }) => {
  const isOver = length > max * LONG_STREAM
  if (length < LONG_EVENTS && !(isOver && length > MANY_KEPT)) return []
  return [{ severity: 'warning', problem: `the stream of events has ${length} entries; it may have about ${max}` }]
}
