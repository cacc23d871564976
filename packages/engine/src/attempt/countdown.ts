// Which limit of a running attempt passes next, and which has passed: decided from the time, without a timer.
import type { EndReason } from '@bullpen/contract'
import type { Limits } from './timeouts.ts'

/** Which limit passed, and how long it was. */
export interface PassedLimit {
  readonly reason: EndReason<'TERMINATED_TIMEOUT'>
  readonly limitMs: number
}

/** All times on one clock, in milliseconds. */
export interface Countdown {
  readonly beganAt: number
  /** The last sign of life; the beginning is one. */
  readonly lastBeat: number
  readonly deadlineAt: number | 'none'
  readonly limits: Limits
}

/** When to look again; Infinity: never. */
export function nextLimitAt({ beganAt, lastBeat, deadlineAt, limits }: Countdown): number {
  return Math.min(
    after(beganAt, limits.timeoutMs),
    after(lastBeat, limits.heartbeatMs),
    deadlineAt === 'none' ? Number.POSITIVE_INFINITY : deadlineAt,
  )
}

/** The first limit that has passed by now. */
export function passedLimit(countdown: Countdown, now: number): PassedLimit | undefined {
  const at = nextLimitAt(countdown)
  if (now < at) return undefined
  const { beganAt, lastBeat, deadlineAt, limits } = countdown
  const { timeoutMs, heartbeatMs } = limits
  if (timeoutMs !== 'none' && beganAt + timeoutMs === at) return { reason: 'run', limitMs: timeoutMs }
  if (heartbeatMs !== 'none' && lastBeat + heartbeatMs === at) return { reason: 'heartbeat', limitMs: heartbeatMs }
  return deadlineAt === 'none' ? undefined : { reason: 'deadline', limitMs: Number(limits.deadlineMs) }
}

function after(from: number, limitMs: number | 'none'): number {
  return limitMs === 'none' ? Number.POSITIVE_INFINITY : from + limitMs
}
