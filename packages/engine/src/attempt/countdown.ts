// Which limit of a running attempt passes next, and which has passed: decided from the time, without a timer.
import type { EndReason } from '@bullpen/contract'
import type { Timeouts } from './timeouts.ts'

/** Which limit passed, and how long it was. */
export interface PassedTimeout {
  readonly reason: EndReason<'TERMINATED_TIMEOUT'>
  readonly limitMs: number
}

/** All times on one clock, in milliseconds. */
export interface TimeoutState {
  readonly startedAt: number
  /** The last sign of life; the beginning is one. */
  readonly lastHeartbeatAt: number
  readonly deadlineAt: number | 'none'
  readonly timeouts: Timeouts
}

/** When to look again; Infinity: never. */
export function nextTimeoutAt({ startedAt, lastHeartbeatAt, deadlineAt, timeouts }: TimeoutState): number {
  return Math.min(
    after(startedAt, timeouts.timeoutMs),
    after(lastHeartbeatAt, timeouts.heartbeatMs),
    deadlineAt === 'none' ? Number.POSITIVE_INFINITY : deadlineAt,
  )
}

/** The first limit that has passed by now. */
export function passedTimeout(countdown: TimeoutState, now: number): PassedTimeout | undefined {
  const at = nextTimeoutAt(countdown)
  if (now < at) return undefined
  const { startedAt, lastHeartbeatAt, deadlineAt, timeouts } = countdown
  const { timeoutMs, heartbeatMs } = timeouts
  if (timeoutMs !== 'none' && startedAt + timeoutMs === at) return { reason: 'run_timeout', limitMs: timeoutMs }
  if (heartbeatMs !== 'none' && lastHeartbeatAt + heartbeatMs === at)
    return { reason: 'heartbeat_timeout', limitMs: heartbeatMs }
  return deadlineAt === 'none' ? undefined : { reason: 'total_timeout', limitMs: Number(timeouts.totalMs) }
}

function after(from: number, limitMs: number | 'none'): number {
  return limitMs === 'none' ? Number.POSITIVE_INFINITY : from + limitMs
}
