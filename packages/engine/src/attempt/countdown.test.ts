import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextTimeoutAt, passedTimeout, type TimeoutState } from './countdown.ts'
import { DEFAULT_TIMEOUTS } from './timeouts.ts'

function countdown(
  timeoutMs: number | 'none',
  heartbeatMs: number | 'none',
  deadlineAt: number | 'none',
  lastHeartbeatAt = 0,
) {
  const totalMs = deadlineAt === 'none' ? 'none' : 5_000
  return {
    startedAt: 0,
    lastHeartbeatAt,
    deadlineAt,
    timeouts: { ...DEFAULT_TIMEOUTS, timeoutMs, heartbeatMs, totalMs },
  } as const
}

describe('the countdown of an attempt', () => {
  it('comes to the first of its timeouts, and names it with its length', () => {
    expect(passedTimeout(countdown(100, 300, 300), 100)).toEqual({ reason: 'run_timeout', limitMs: 100 })
    expect(passedTimeout(countdown(900, 50, 900, 70), 120)).toEqual({ reason: 'heartbeat_timeout', limitMs: 50 })
    expect(passedTimeout(countdown(900, 'none', 80), 80)).toEqual({ reason: 'total_timeout', limitMs: 5_000 })
  })

  it('has passed nothing a moment before', () => {
    expect(passedTimeout(countdown(100, 200, 300), 99.9)).toBeUndefined()
  })

  it('begins anew for the heartbeat with each sign of life, and for nothing else', () => {
    expect(nextTimeoutAt(countdown(1_000, 100, 'none', 0))).toBe(100)
    expect(nextTimeoutAt(countdown(1_000, 100, 'none', 80))).toBe(180)
    expect(nextTimeoutAt(countdown(1_000, 100, 'none', 950))).toBe(1_000)
  })

  it('never ends without timeouts', () => {
    expect(nextTimeoutAt(countdown('none', 'none', 'none'))).toBe(Number.POSITIVE_INFINITY)
    expect(passedTimeout(countdown('none', 'none', 'none'), 1e12)).toBeUndefined()
  })

  it('has passed a limit exactly from the moment that it named as the next one', () => {
    const ms = fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.constant('none' as const))
    const moment = fc.integer({ min: 0, max: 1_000 })
    fc.assert(
      fc.property(ms, ms, ms, moment, moment, (timeoutMs, heartbeatMs, deadlineAt, lastHeartbeatAt, now) => {
        const at: TimeoutState = countdown(timeoutMs, heartbeatMs, deadlineAt, lastHeartbeatAt)
        expect(passedTimeout(at, now) !== undefined).toBe(now >= nextTimeoutAt(at))
      }),
    )
  })
})
