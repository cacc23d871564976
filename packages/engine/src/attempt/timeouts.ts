// Determines which of an attempt's timeouts apply, when the next one expires, and which one, if any, has expired.
//
// Four timeouts can end an attempt. The queue timeout and the total timeout are checked before the handler starts. The run
// timeout, the heartbeat timeout and the total timeout are checked while it runs. All decisions here depend only on the times
// that are passed in. The timer itself belongs to the interruptible run.
import type { EndReason, TaskDefinition } from '@bullpen/contract'
import { contradictionIn } from '@bullpen/contract/internal'

type Ms = number | 'none'

export interface Timeouts {
  readonly timeoutMs: Ms
  readonly heartbeatMs: Ms
  /** The time limit from the task becoming ready to the start of its first attempt. */
  readonly queueMs: Ms
  /** The time limit from enqueueing to the end of the last attempt. */
  readonly totalMs: Ms
  /** The time limit from the signal to the release of the slot. */
  readonly graceMs: Ms
}

export const DEFAULT_TIMEOUTS: Timeouts = Object.freeze({
  timeoutMs: 300_000,
  heartbeatMs: 'none',
  queueMs: 'none',
  totalMs: 'none',
  graceMs: 5_000,
})

/** The timeouts that a caller set for one task. */
export type CallTimeouts = { readonly [L in Exclude<keyof Timeouts, 'graceMs'>]?: Ms | undefined }

/**
 * Returns an attempt's timeouts. For each one, the caller's setting takes precedence over the definition's, and the definition's
 * over the pool's.
 */
export function resolveTimeouts(definition: TaskDefinition, pool: Timeouts, call: CallTimeouts | undefined): Timeouts {
  const own = {
    timeoutMs: call?.timeoutMs ?? definition.timeoutMs,
    heartbeatMs: call?.heartbeatMs ?? definition.heartbeatMs,
    queueMs: call?.queueMs ?? definition.queueMs,
    totalMs: call?.totalMs ?? definition.totalMs,
  }
  return {
    timeoutMs: inherited(own, 'timeoutMs', pool),
    heartbeatMs: inherited(own, 'heartbeatMs', pool),
    queueMs: inherited(own, 'queueMs', pool),
    totalMs: inherited(own, 'totalMs', pool),
    graceMs: definition.graceMs ?? pool.graceMs,
  }
}

/**
 * Returns a timeout that was set for this task or, if it was not set, the pool's default. The default does not apply if it
 * contradicts another timeout that was set for this task.
 */
function inherited(own: CallTimeouts, timeout: keyof CallTimeouts, pool: Timeouts): Ms {
  const set = own[timeout]
  if (set !== undefined) return set
  return contradictionIn({ ...own, [timeout]: pool[timeout] }) === undefined ? pool[timeout] : 'none'
}

/**
 * Returns the time at which the task's total timeout expires, in ms since 1970. `since` is when the task was enqueued or, if it was
 * dead, last retried. No other code computes this time.
 */
export function totalTimeoutAt(since: number, { totalMs }: Timeouts): Ms {
  return totalMs === 'none' ? 'none' : since + totalMs
}

/** A timeout that has expired, and its length. */
export interface PassedTimeout {
  readonly reason: EndReason<'TERMINATED_TIMEOUT'>
  readonly limitMs: number
}

/** Times are in milliseconds since 1970. */
interface BeforeStart {
  readonly timeouts: Timeouts
  readonly totalTimeoutAt: Ms
  /** When the task became ready. Undefined unless this is the first attempt. */
  readonly readyAt: number | undefined
}

/** Returns the timeout that expired before the handler was started, if any. */
export function timeoutBeforeStart(task: BeforeStart, now: number): PassedTimeout | undefined {
  const { queueMs, totalMs } = task.timeouts
  if (queueMs !== 'none' && task.readyAt !== undefined && now >= task.readyAt + queueMs) {
    return { reason: 'queue_timeout', limitMs: queueMs }
  }
  if (totalMs !== 'none' && task.totalTimeoutAt !== 'none' && now >= task.totalTimeoutAt) {
    return { reason: 'total_timeout', limitMs: totalMs }
  }
  return undefined
}

/** A running handler. All times are in milliseconds on the same clock. */
export interface RunningTimeouts {
  readonly timeouts: Timeouts
  readonly startedAt: number
  /** The time of the last heartbeat. The start of the attempt counts as a heartbeat. */
  readonly lastHeartbeatAt: number
  readonly totalTimeoutAt: Ms
}

/** Returns the time at which the next timeout expires, or Infinity if there is none. */
export function nextTimeoutAt({ timeouts, startedAt, lastHeartbeatAt, totalTimeoutAt }: RunningTimeouts): number {
  return Math.min(
    after(startedAt, timeouts.timeoutMs),
    after(lastHeartbeatAt, timeouts.heartbeatMs),
    totalTimeoutAt === 'none' ? Number.POSITIVE_INFINITY : totalTimeoutAt,
  )
}

/** Returns the first timeout that has expired by `now`, if any. */
export function passedTimeout(running: RunningTimeouts, now: number): PassedTimeout | undefined {
  const at = nextTimeoutAt(running)
  if (now < at) return undefined
  const { timeoutMs, heartbeatMs, totalMs } = running.timeouts
  if (timeoutMs !== 'none' && running.startedAt + timeoutMs === at) {
    return { reason: 'run_timeout', limitMs: timeoutMs }
  }
  if (heartbeatMs !== 'none' && running.lastHeartbeatAt + heartbeatMs === at) {
    return { reason: 'heartbeat_timeout', limitMs: heartbeatMs }
  }
  return totalMs === 'none' ? undefined : { reason: 'total_timeout', limitMs: totalMs }
}

function after(from: number, ms: Ms): number {
  return ms === 'none' ? Number.POSITIVE_INFINITY : from + ms
}
