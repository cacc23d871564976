// Tests that processes that lease tokens keep to a rate together, with a clock that the test moves.
import type { EnqueueRate } from '@bullpen/contract'
import { type TokenBucket, tokensIn } from '@bullpen/engine/internal'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  afterReply,
  afterSpending,
  batchOf,
  decideOnRate,
  LEASE_MS,
  LEASE_VALID_MS,
  NO_LEASE,
  type RateLease,
  type WantedTokens,
  wantedTokens,
} from './rate-lease.ts'

/** Processes that share the bucket of one API key. Redis replies at once. */
function simulate(rate: EnqueueRate, processes: number) {
  const leases: RateLease[] = Array.from({ length: processes }, () => NO_LEASE)
  const admitted: { readonly at: number; readonly tasks: number }[] = []
  const asked: number[][] = leases.map(() => [])
  let bucket: TokenBucket | undefined
  let now = 0

  /** Grants tokens like the script in Redis. */
  const grant = ({ needed, least, ahead }: WantedTokens) => {
    const tokens = tokensIn(bucket, now, rate)
    const whole = Math.floor(tokens + 1e-6)
    if (whole < least) return { granted: 0, left: tokens }
    const first = Math.min(needed, whole)
    const granted = first + Math.min(ahead, Math.floor((whole - first) / 2))
    bucket = { tokens: tokens - granted, at: now }
    return { granted, left: tokens - granted }
  }

  const take = (process: number, tasks: number): number | 'admitted' => {
    const lease = leases[process] as RateLease
    const decision = decideOnRate(lease, tasks, now, rate)
    if (decision.kind === 'refuse') return decision.retryAfterMs
    if (decision.kind === 'spend') {
      leases[process] = afterSpending(lease, tasks)
      admitted.push({ at: now, tasks })
      return 'admitted'
    }
    const wanted = wantedTokens(lease, tasks, now, rate)
    asked[process]?.push(now)
    leases[process] = afterReply(lease, grant(wanted), wanted, now, rate)
    return take(process, tasks)
  }

  return {
    leases,
    admitted,
    asked,
    take,
    pass: (ms: number): void => {
      now += ms
    },
  }
}

const rates = fc.record({ max: fc.integer({ min: 1, max: 500 }), perMs: fc.constantFrom(100, 1_000, 3_000, 60_000) })
const steps = fc.array(
  fc.record({
    process: fc.nat(3),
    share: fc.double({ min: 0, max: 1, noNaN: true }),
    repeat: fc.integer({ min: 1, max: 40 }),
    pauseMs: fc.oneof(fc.constant(0), fc.nat(20), fc.nat(LEASE_VALID_MS * 2)),
  }),
  { minLength: 1, maxLength: 60 },
)

describe('processes that lease tokens', () => {
  it('admit at most the rate, the burst and one batch for each process in any window', () => {
    fc.assert(
      fc.property(rates, fc.integer({ min: 1, max: 4 }), steps, (rate, processes, all) => {
        const { take, pass, admitted, leases } = simulate(rate, processes)
        const batch = batchOf(rate)
        for (const { process, share, repeat, pauseMs } of all) {
          const tasks = 1 + Math.floor(share * (batch - 1))
          for (let i = 0; i < repeat; i++) take(process % processes, tasks)
          for (const { held } of leases) expect(held).toBeLessThanOrEqual(batch)
          pass(pauseMs)
        }
        // The tasks of a window are the difference between two sums. It exceeds what was refilled by at most this much.
        const most = rate.max + processes * batch
        let sum = 0
        let least = Number.POSITIVE_INFINITY
        for (const { at, tasks } of admitted) {
          const refilled = (at * rate.max) / rate.perMs
          least = Math.min(least, sum - refilled)
          sum += tasks
          expect(sum - refilled - least).toBeLessThanOrEqual(most + 1e-3)
        }
      }),
    )
  })

  it('refuse nothing as long as one process keeps to the rate', () => {
    fc.assert(
      fc.property(rates, fc.array(fc.double({ min: 1, max: 5, noNaN: true }), { maxLength: 100 }), (rate, gaps) => {
        const { take, pass } = simulate(rate, 1)
        for (const gap of gaps) {
          expect(take(0, 1)).toBe('admitted')
          pass((gap * rate.perMs) / rate.max + 1e-3)
        }
      }),
    )
  })

  it('together admit nearly all that the rate permits, although each of them demands more', () => {
    const rate = { max: 100, perMs: 1_000 }
    const { take, pass, admitted } = simulate(rate, 3)
    for (let ms = 0; ms < 10_000; ms += 5) {
      for (const process of [0, 1, 2]) take(process, 1)
      pass(5)
    }
    expect(admitted.length).toBeGreaterThan(1_050)
    expect(admitted.length).toBeLessThanOrEqual(1_100)
  })

  it('ask Redis rarely, whether the rate permits their tasks or not', () => {
    const rate = { max: 1_000, perMs: 1_000 }
    for (const gapMs of [0.5, 2]) {
      const { take, pass, asked } = simulate(rate, 1)
      for (let ms = 0; ms < 10_000; ms += gapMs) {
        take(0, 1)
        pass(gapMs)
      }
      expect(asked[0]?.length).toBeLessThan((10_000 / LEASE_MS) * 2.5)
    }
  })

  it('learn when there are enough tokens', () => {
    const rate = { max: 10, perMs: 10_000 }
    const { take, pass } = simulate(rate, 2)
    for (let n = 0; n < 10; n++) expect(take(0, 1)).toBe('admitted')
    expect(take(1, 1)).toBeCloseTo(1_000)
    pass(400)
    expect(take(0, 1)).toBeCloseTo(600)
    pass(600)
    expect([take(0, 1), take(1, 1)]).toEqual(['admitted', expect.closeTo(1_000)])
  })

  it('do not use tokens that have lapsed', () => {
    const lease: RateLease = { ...NO_LEASE, held: 5, leasedAt: 0, left: 0, pausedUntil: 0 }
    const rate = { max: 100, perMs: 1_000 }
    expect(decideOnRate(lease, 1, LEASE_VALID_MS - 1, rate)).toEqual({ kind: 'spend' })
    expect(decideOnRate(lease, 1, LEASE_VALID_MS, rate)).toEqual({ kind: 'ask' })
  })
})
