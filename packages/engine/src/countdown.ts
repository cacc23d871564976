// The one timer of a long attempt: calls back at whichever of its limits passes first.
import type { EndReason } from '@bullpen/contract'
import type { AttemptLimits } from './limits.ts'
import type { Clock } from './ports.ts'

/** Which limit passed, and how long it was. */
export interface PassedLimit {
  readonly reason: EndReason<'TERMINATED_TIMEOUT'>
  readonly limitMs: number
}

export interface Countdown {
  /** A sign of life. Moves no timer: the heartbeat is looked at when its timer fires, and then set again. */
  beat(): void
  stop(): void
}

/** Calls `passed` once at most. */
export function startCountdown(limits: AttemptLimits, clock: Clock, passed: (limit: PassedLimit) => void): Countdown {
  const beganAt = clock.monotonic()
  const { timeoutMs, heartbeatMs, deadlineAt } = limits
  const untilDeadlineMs = deadlineAt === 'none' ? Number.POSITIVE_INFINITY : Math.max(0, deadlineAt - clock.now())
  const runMs = timeoutMs === 'none' ? Number.POSITIVE_INFINITY : timeoutMs
  /** The first of the two that don't move. */
  const fixed: PassedLimit =
    untilDeadlineMs < runMs ? { reason: 'deadline', limitMs: untilDeadlineMs } : { reason: 'run', limitMs: runMs }
  let lastBeat = beganAt
  let stop = (): void => {}

  const fixedAt = beganAt + fixed.limitMs
  const heartbeatAt = (): number => (heartbeatMs === 'none' ? Number.POSITIVE_INFINITY : lastBeat + heartbeatMs)
  const look = (): void => {
    const now = clock.monotonic()
    if (now >= fixedAt) passed(fixed)
    else if (heartbeatMs !== 'none' && now >= heartbeatAt()) passed({ reason: 'heartbeat', limitMs: heartbeatMs })
    else wait()
  }
  const wait = (): void => {
    const next = Math.min(fixedAt, heartbeatAt()) - clock.monotonic()
    // Rounded up: a timer that fires a fraction early would only be set again.
    if (next < Number.POSITIVE_INFINITY) stop = clock.after(Math.max(0, Math.ceil(next)), look)
  }
  wait()
  return {
    beat: () => {
      lastBeat = clock.monotonic()
    },
    stop: () => stop(),
  }
}
