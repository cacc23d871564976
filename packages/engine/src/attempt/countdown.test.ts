import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Countdown, nextLimitAt, passedLimit } from './countdown.ts'
import { DEFAULT_LIMITS } from './timeouts.ts'

function countdown(
  timeoutMs: number | 'none',
  heartbeatMs: number | 'none',
  deadlineAt: number | 'none',
  lastBeat = 0,
) {
  const deadlineMs = deadlineAt === 'none' ? 'none' : 5_000
  return {
    beganAt: 0,
    lastBeat,
    deadlineAt,
    limits: { ...DEFAULT_LIMITS, timeoutMs, heartbeatMs, deadlineMs },
  } as const
}

describe('the countdown of an attempt', () => {
  it('comes to the first of its limits, and names it with its length', () => {
    expect(passedLimit(countdown(100, 300, 300), 100)).toEqual({ reason: 'run', limitMs: 100 })
    expect(passedLimit(countdown(900, 50, 900, 70), 120)).toEqual({ reason: 'heartbeat', limitMs: 50 })
    expect(passedLimit(countdown(900, 'none', 80), 80)).toEqual({ reason: 'deadline', limitMs: 5_000 })
  })

  it('has passed nothing a moment before', () => {
    expect(passedLimit(countdown(100, 200, 300), 99.9)).toBeUndefined()
  })

  it('begins anew for the heartbeat with each sign of life, and for nothing else', () => {
    expect(nextLimitAt(countdown(1_000, 100, 'none', 0))).toBe(100)
    expect(nextLimitAt(countdown(1_000, 100, 'none', 80))).toBe(180)
    expect(nextLimitAt(countdown(1_000, 100, 'none', 950))).toBe(1_000)
  })

  it('never ends without limits', () => {
    expect(nextLimitAt(countdown('none', 'none', 'none'))).toBe(Number.POSITIVE_INFINITY)
    expect(passedLimit(countdown('none', 'none', 'none'), 1e12)).toBeUndefined()
  })

  it('has passed a limit exactly from the moment that it named as the next one', () => {
    const ms = fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.constant('none' as const))
    const moment = fc.integer({ min: 0, max: 1_000 })
    fc.assert(
      fc.property(ms, ms, ms, moment, moment, (timeoutMs, heartbeatMs, deadlineAt, lastBeat, now) => {
        const at: Countdown = countdown(timeoutMs, heartbeatMs, deadlineAt, lastBeat)
        expect(passedLimit(at, now) !== undefined).toBe(now >= nextLimitAt(at))
      }),
    )
  })
})
