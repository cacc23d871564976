// The credit that producers spend between two readings of Redis's memory: together, they stay close to the watermark.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createMemoryAccount } from './memory-account.ts'
import { CURRENT_MS, creditOf, decideOnMemory, isReadingDue, LEAST_BETWEEN_MS, type Spending } from './memory-credit.ts'

const LIMIT = 1_000_000_000
const WATERMARK = 0.8
const reading = (usedBytes: number, producers = 1) => ({ usedBytes, limitBytes: LIMIT, producers })

const spendings: fc.Arbitrary<Spending> = fc.record({
  reading: fc.record({
    usedBytes: fc.integer({ min: 0, max: LIMIT }),
    limitBytes: fc.constant(LIMIT),
    producers: fc.integer({ min: 1, max: 500 }),
  }),
  watermark: fc.double({ min: 0.01, max: 0.95, noNaN: true }),
  trust: fc.constantFrom('new', 'current', 'outdated'),
  spentBytes: fc.oneof(fc.constant(0), fc.integer({ min: 0, max: LIMIT / 10 })),
})
const costs = fc.integer({ min: 1, max: LIMIT / 10 })

describe('the decision on a task', () => {
  it('admits nothing that would pass the watermark by what the producer knows', () => {
    fc.assert(
      fc.property(spendings, costs, (spending, cost) => {
        const { reading: read, watermark, spentBytes } = spending
        fc.pre(read.usedBytes + spentBytes + cost > watermark * LIMIT)
        expect(decideOnMemory(spending, cost)).not.toBe('admit')
      }),
    )
  })

  it('refuses only what would pass the watermark by a recent reading', () => {
    fc.assert(
      fc.property(spendings, costs, (spending, cost) => {
        fc.pre(decideOnMemory(spending, cost) === 'refuse')
        expect(spending.trust).not.toBe('outdated')
        expect(spending.reading.usedBytes + spending.spentBytes + cost).toBeGreaterThan(spending.watermark * LIMIT)
      }),
    )
  })

  it('admits a task that is larger than the credit, if it is the first one after a recent reading', () => {
    const spending = { reading: reading(0, 100), watermark: WATERMARK, trust: 'current', spentBytes: 0 } as const
    const large = creditOf(spending) * 5
    expect(decideOnMemory(spending, large)).toBe('admit')
    expect(decideOnMemory({ ...spending, spentBytes: 1 }, large)).toBe('read')
    expect(decideOnMemory({ ...spending, trust: 'outdated' }, large)).toBe('read')
  })

  it('asks for another reading in the background once half of the credit is spent, or the reading is out of date', () => {
    const spending = { reading: reading(0), watermark: WATERMARK, trust: 'current', spentBytes: 0 } as const
    const half = creditOf(spending) / 2
    expect(isReadingDue({ ...spending, spentBytes: half }, LEAST_BETWEEN_MS)).toBe(false)
    expect(isReadingDue({ ...spending, spentBytes: half + 1 }, LEAST_BETWEEN_MS)).toBe(true)
    expect(isReadingDue({ ...spending, spentBytes: half + 1 }, LEAST_BETWEEN_MS - 1)).toBe(false)
    expect(isReadingDue({ ...spending, trust: 'outdated' }, CURRENT_MS + 1)).toBe(true)
  })
})

const MOST_PRODUCERS = 20
const MOST_COST = LIMIT / 10_000
const TICK_MS = 250
const IDLE_MS = 10_000
const SILENCE_MS = 30_000

/** Simulates a Redis whose memory only producers use, and producers that read the memory as a meter does. */
function simulate(usedAtFirst: number) {
  let [now, usedBytes] = [0, usedAtFirst]
  const seen = new Map<number, number>()
  const producers = Array.from({ length: MOST_PRODUCERS }, (_, id) => {
    const account = createMemoryAccount({ watermark: WATERMARK, now: () => now })
    let [sentAt, isActive] = [Number.NEGATIVE_INFINITY, false]
    /** Tasks that were sent but that Redis has not executed. */
    let inFlightBytes = 0
    const read = (): void => {
      sentAt = now
      isActive = false
      const received = account.beginReading()
      usedBytes += inFlightBytes
      inFlightBytes = 0
      const isNew = now - (seen.get(id) ?? Number.NEGATIVE_INFINITY) >= SILENCE_MS
      seen.set(id, now)
      const alive = [...seen.values()].filter((at) => now - at < SILENCE_MS).length
      received(reading(usedBytes, alive), isNew)
    }
    return {
      inFlight: () => inFlightBytes,
      enqueue(cost: number): 'admit' | 'refuse' {
        isActive = true
        let decision = account.decide(cost)
        while (decision === 'read') {
          now += LEAST_BETWEEN_MS
          read()
          decision = account.decide(cost)
        }
        if (decision === 'admit') inFlightBytes += cost
        return decision
      },
      tick() {
        if (isActive || (sentAt > Number.NEGATIVE_INFINITY && now - sentAt >= IDLE_MS)) read()
      },
    }
  })
  const advance = (ticks: number): void => {
    for (let tick = 0; tick < ticks; tick++) {
      now += TICK_MS
      for (const producer of producers) producer.tick()
    }
  }
  return {
    producers,
    stored: () => producers.reduce((sum, producer) => sum + producer.inFlight(), usedBytes),
    advance,
    /** Every producer stores a small task at each tick, so that all of them have recent readings. */
    keepBusy(ticks: number) {
      for (let tick = 0; tick < ticks; tick++) {
        for (const producer of producers) producer.enqueue(1)
        advance(1)
      }
    },
  }
}

const steps = fc.array(
  fc.oneof(
    fc.record({
      producer: fc.nat(MOST_PRODUCERS - 1),
      cost: fc.integer({ min: 1, max: MOST_COST }),
      times: fc.integer({ min: 1, max: 600 }),
    }),
    fc.record({ ticks: fc.integer({ min: 1, max: 50 }) }),
    fc.record({ busyTicks: fc.integer({ min: 1, max: 5 }) }),
  ),
  { maxLength: 80, size: 'max' },
)

describe('many producers', () => {
  it('stay below 85% of the memory with a watermark of 80%, in whatever order they start, pause and enqueue', () => {
    fc.assert(
      fc.property(fc.double({ min: 0.6, max: 0.8, noNaN: true }), steps, (share, given) => {
        const { producers, stored, advance, keepBusy } = simulate(share * LIMIT)
        for (const step of given) {
          if ('ticks' in step) advance(step.ticks)
          else if ('busyTicks' in step) keepBusy(step.busyTicks)
          else for (let n = 0; n < step.times; n++) producers[step.producer]?.enqueue(step.cost)
        }
        // Each producer may store one task beyond its credit.
        expect(stored()).toBeLessThanOrEqual(0.85 * LIMIT + MOST_PRODUCERS * MOST_COST)
      }),
    )
  })

  it('stay below 85% if all of them start at the same time and store as much as they may', () => {
    const { producers, stored, advance } = simulate(0.799 * LIMIT)
    for (let round = 0; round < 20; round++) {
      for (const producer of producers) while (producer.enqueue(MOST_COST / 10) === 'admit');
      advance(1)
    }
    expect(stored()).toBeLessThanOrEqual(0.85 * LIMIT)
  })

  it('stay below 85% if all of them have a recent reading and store as much as they may', () => {
    const { producers, stored, keepBusy } = simulate(0.76 * LIMIT)
    keepBusy(4)
    for (const producer of producers) while (producer.enqueue(MOST_COST) === 'admit');
    expect(stored()).toBeLessThanOrEqual(0.85 * LIMIT)
  })

  it('can use all of the memory below the watermark', () => {
    const { producers, stored, advance } = simulate(0)
    for (const producer of producers) while (producer.enqueue(MOST_COST) === 'admit') advance(0)
    expect(stored()).toBeGreaterThan(WATERMARK * LIMIT - 2 * MOST_COST)
  })
})

describe('an account', () => {
  it('does not count what was sent before a reading twice, and counts what was sent after it', () => {
    const account = createMemoryAccount({ watermark: WATERMARK, now: () => CURRENT_MS })
    account.beginReading()(reading(0.7 * LIMIT), false)
    expect(account.decide(0.01 * LIMIT)).toBe('admit')
    const received = account.beginReading()
    expect(account.decide(0.01 * LIMIT)).toBe('admit')
    received(reading(0.78 * LIMIT), false)
    expect(account.decide(0.011 * LIMIT)).toBe('refuse')
    expect(account.decide(0.009 * LIMIT)).toBe('admit')
  })

  it('admits every task if Redis does not report its memory', () => {
    const account = createMemoryAccount({ watermark: WATERMARK, now: () => 0 })
    expect(account.decide(1)).toBe('read')
    account.beginReading()(undefined, true)
    expect(account.decide(LIMIT)).toBe('admit')
    expect(account.isReadingDue()).toBe(false)
  })
})
