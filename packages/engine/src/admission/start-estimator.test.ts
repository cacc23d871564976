// Tests the estimates with given readings, and compares them with simulated queues whose workers start a known number of tasks.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type BacklogReading, createStartEstimator, startRate } from './start-estimator.ts'

/** A time at a whole second, so that rounding changes nothing. */
const NOW = 1_800_000_000_000

const reading = (given: Partial<BacklogReading>): BacklogReading => ({
  at: 0,
  unprioritized: 0,
  prioritized: 0,
  started: 0,
  isPaused: false,
  ...given,
})

function estimatorWith(readings: readonly Partial<BacklogReading>[]) {
  const estimator = createStartEstimator()
  for (const each of readings) estimator.beginReading()(reading(each))
  return estimator
}

const task = ({ priority = 0, delayMs = undefined as number | undefined, enqueuedAt = NOW } = {}) => ({
  priority,
  delayMs,
  enqueuedAt,
})

/** A queue with a backlog of 1,000 tasks, of which 100 start in each second. */
const BUSY = [
  { at: 0, unprioritized: 1_200 },
  { at: 2_000, unprioritized: 1_000, started: 200 },
]

describe('a task that was not stored', () => {
  const wait = (estimator: ReturnType<typeof createStartEstimator>, given = task()) =>
    (estimator.expect(given, 2_000) ?? Number.NaN) - NOW

  it.each([0, 3])('is removed from the backlog, with priority %i', (priority) => {
    const estimator = estimatorWith(BUSY)
    for (let i = 0; i < 500; i++) {
      estimator.expect(task({ priority }), 2_000)
      estimator.withdraw(task({ priority }), estimator.readingsBegun())
    }
    expect(wait(estimator, task({ priority }))).toBe(10_000)
  })

  it('is not removed if it was never in the backlog', () => {
    const estimator = estimatorWith(BUSY)
    estimator.withdraw(task({ delayMs: 1_000 }), estimator.readingsBegun())
    for (let i = 0; i < 100; i++) estimator.expect(task(), 2_000)
    expect(wait(estimator)).toBe(11_000)
  })

  it('is counted neither before nor after a reading that began after it was added', () => {
    const estimator = estimatorWith(BUSY)
    const begun = estimator.readingsBegun()
    for (let i = 0; i < 1_000; i++) estimator.expect(task(), 2_000)
    const received = estimator.beginReading()
    for (let i = 0; i < 500; i++) estimator.withdraw(task(), begun)
    expect(wait(estimator)).toBe(15_000)
    received(reading({ at: 2_000, unprioritized: 1_000, started: 200 }))
    // The other withdrawals arrive after the reading, which did not contain the tasks.
    for (let i = 0; i < 500; i++) estimator.withdraw(task(), begun)
    // The task of the line above was added while the reading was under way.
    expect(wait(estimator)).toBe(11_000)
  })
})

describe('the rate at which tasks start', () => {
  it('is unknown without two readings, and if nothing has started', () => {
    expect(startRate([])).toBeUndefined()
    expect(startRate([reading({ unprioritized: 5 })])).toBeUndefined()
    expect(startRate([reading({}), reading({ at: 2_000 })])).toBeUndefined()
  })

  it('is what the workers can start if tasks were ready all the time', () => {
    expect(startRate(BUSY.map(reading))).toEqual({ perMs: 0.1, isLimit: true })
  })

  it('is a lower bound if the queue may have been empty', () => {
    const [from, to] = [reading({ unprioritized: 5 }), reading({ at: 2_000, unprioritized: 3, started: 5 })]
    expect(startRate([from, to])).toEqual({ perMs: 5 / 2_000, isLimit: false })
  })

  it('remains known when the queue has been worked off, and rises if more starts are seen', () => {
    const idle = { at: 100_000, started: 1_200 }
    expect(startRate([...BUSY, idle].map(reading))).toEqual({ perMs: 0.1, isLimit: true })
    const faster = { at: 102_000, started: 1_600 }
    expect(startRate([...BUSY, idle, faster].map(reading))).toEqual({ perMs: 0.2, isLimit: true })
  })

  it('is that of the newest readings if they contain enough starts', () => {
    const slower = [1, 2, 3].map((i) => ({ at: 2_000 + i * 2_000, unprioritized: 1_000, started: 200 + i * 40 }))
    expect(startRate([...BUSY, ...slower].map(reading))?.perMs).toBeCloseTo(0.02)
  })

  it('does not count the time before the workers have come, once enough tasks have started', () => {
    const rateAfter = (started: number) =>
      startRate([
        reading({ unprioritized: 1_000 }),
        reading({ at: 20_000, unprioritized: 1_000 }),
        reading({ at: 22_000, unprioritized: 1_000 - started, started }),
      ])
    expect(rateAfter(200)).toEqual({ perMs: 0.1, isLimit: true })
    expect(rateAfter(5)).toEqual({ perMs: 5 / 22_000, isLimit: true })
  })

  it('is unknown if tasks wait that no workers start, although earlier ones have been started at once', () => {
    const stopped = [
      { at: 2_000, unprioritized: 5, started: 10 },
      { at: 4_000, unprioritized: 15, started: 10 },
    ]
    expect(startRate([{}, ...stopped].map(reading))).toBeUndefined()
  })

  it('is unknown if tasks are ready but none has started for ten seconds', () => {
    const stopped = (at: number) => startRate([...BUSY, { at, unprioritized: 1_000, started: 200 }].map(reading))
    expect(stopped(11_000)?.isLimit).toBe(true)
    expect(stopped(12_001)).toBeUndefined()
  })

  it('tolerates a quiet minute if starts are rare', () => {
    const rare = (at: number) =>
      startRate([
        reading({ unprioritized: 20 }),
        reading({ at: 100_000, unprioritized: 10, started: 10 }),
        reading({ at, unprioritized: 10, started: 10 }),
      ])
    expect(rare(155_000)?.isLimit).toBe(true)
    expect(rare(161_000)).toBeUndefined()
  })

  it('does not count the time of a pause', () => {
    const paused = [
      { at: 2_000, unprioritized: 1_000, started: 200, isPaused: true },
      { at: 4_000, unprioritized: 1_000, started: 200 },
    ]
    const resumed = { at: 6_000, unprioritized: 800, started: 400 }
    expect(startRate([{ unprioritized: 1_200 }, ...paused, resumed].map(reading))).toEqual({
      perMs: 0.1,
      isLimit: true,
    })
  })
})

describe('a task', () => {
  it('is expected to start when the tasks before it have started', () => {
    const estimator = estimatorWith(BUSY)
    expect(estimator.expect(task(), 2_000)).toBe(NOW + 10_000)
    // One second later, 100 tasks have started, and one was added: 9,010 ms are left.
    expect(estimator.expect(task({ enqueuedAt: NOW + 1_000 }), 3_000)).toBe(NOW + 11_000)
  })

  it('is expected to start now if no tasks are ready', () => {
    const readings = [{ at: 0 }, { at: 2_000, started: 1 }]
    expect(estimatorWith(readings).expect(task(), 2_500)).toBe(NOW)
    expect(estimatorWith(readings).expect(task({ enqueuedAt: NOW + 1 }), 2_500)).toBe(NOW + 1_000)
  })

  it('has an unknown start if the queue is paused, if it has not been read recently, and if no workers start its tasks', () => {
    const paused = [...BUSY, { at: 4_000, unprioritized: 1_000, started: 200, isPaused: true }]
    expect(estimatorWith(paused).expect(task(), 4_000)).toBeUndefined()
    expect(estimatorWith(paused).expect(task({ delayMs: 5_000 }), 4_000)).toBeUndefined()
    expect(estimatorWith(BUSY).expect(task(), 12_001)).toBeUndefined()
    expect(estimatorWith([]).expect(task(), 0)).toBeUndefined()
    const stuck = [{ unprioritized: 5 }, { at: 2_000, unprioritized: 5 }]
    expect(estimatorWith(stuck).expect(task(), 2_000)).toBeUndefined()
    expect(estimatorWith(stuck).expect(task({ delayMs: 5_000 }), 2_000)).toBeUndefined()
  })

  it('has an unknown start if many more tasks are ready than were ever seen to start', () => {
    const estimator = estimatorWith([{ at: 0 }, { at: 2_000, started: 10 }])
    const starts = Array.from({ length: 100 }, () => estimator.expect(task(), 2_000))
    expect(starts[0]).toBe(NOW)
    expect(starts[20]).toBe(NOW + 4_000)
    expect(starts[30]).toBeUndefined()
  })

  it('that is scheduled is expected when it is due, unless the backlog takes longer', () => {
    expect(estimatorWith([]).expect(task({ delayMs: 5_000 }), 0)).toBe(NOW + 5_000)
    expect(estimatorWith(BUSY).expect(task({ delayMs: 5_000 }), 2_000)).toBe(NOW + 10_000)
    expect(estimatorWith(BUSY).expect(task({ delayMs: 50_000 }), 2_000)).toBe(NOW + 50_000)
  })

  it('with priority 0 starts before the others, and a scheduled task is not yet part of the backlog', () => {
    const estimator = estimatorWith([
      { at: 0, unprioritized: 1_200, prioritized: 500 },
      { at: 2_000, unprioritized: 1_000, prioritized: 500, started: 200 },
    ])
    for (let i = 0; i < 300; i++) estimator.expect(task({ delayMs: 60_000 }), 2_000)
    expect(estimator.expect(task({ priority: 3 }), 2_000)).toBe(NOW + 15_000)
    for (let i = 0; i < 99; i++) estimator.expect(task({ priority: 3 }), 2_000)
    expect(estimator.expect(task(), 2_000)).toBe(NOW + 10_000)
    expect(estimator.expect(task({ priority: 9, enqueuedAt: NOW - 10 }), 2_000)).toBe(NOW + 16_000)
  })

  it('that was sent before a reading is not counted twice', () => {
    const estimator = estimatorWith(BUSY)
    for (let i = 0; i < 200; i++) estimator.expect(task(), 2_000)
    const received = estimator.beginReading()
    for (let i = 0; i < 100; i++) estimator.expect(task(), 4_000)
    received(reading({ at: 4_000, unprioritized: 1_000, started: 400 }))
    expect(estimator.expect(task(), 4_000)).toBe(NOW + 11_000)
  })
})

describe('in a simulated queue', () => {
  const TICK_MS = 100
  const TICKS_PER_READING = 20

  /** How many tasks can start, and how many arrive, in each tick. */
  const histories = fc.record({
    capacity: fc.integer({ min: 1, max: 20 }),
    arrivals: fc.array(fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 60 })), { minLength: 41, maxLength: 400 }),
  })

  /** Runs the queue. This process enqueues all tasks. */
  function simulate({ capacity, arrivals }: { readonly capacity: number; readonly arrivals: readonly number[] }) {
    const estimator = createStartEstimator()
    const readings: BacklogReading[] = []
    const queue = { ready: 0, started: 0 }
    for (const [tick, count] of arrivals.entries()) {
      const at = tick * TICK_MS
      if (tick % TICKS_PER_READING === 0) {
        const next = reading({ at, unprioritized: queue.ready, started: queue.started })
        readings.push(next)
        estimator.beginReading()(next)
      }
      for (let i = 0; i < count; i++) estimator.expect(task(), at)
      queue.ready += count
      const starting = Math.min(queue.ready, capacity)
      queue.ready -= starting
      queue.started += starting
    }
    const at = arrivals.length * TICK_MS
    return { estimator, rate: startRate(readings), ready: queue.ready, at }
  }

  it('the rate is never too high, and it is right if it is said to be the limit', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const { rate } = simulate(history)
        const real = history.capacity / TICK_MS
        if (rate?.isLimit) expect(rate.perMs).toBeCloseTo(real)
        else if (rate !== undefined) expect(rate.perMs).toBeLessThanOrEqual(real * 1.000_001)
      }),
      { numRuns: 500 },
    )
  })

  it('an estimate is right at the limit, and at most five seconds too late otherwise', () => {
    let known = 0
    fc.assert(
      fc.property(histories, (history) => {
        const { estimator, rate, ready, at } = simulate(history)
        const estimate = estimator.expect(task(), at)
        if (estimate === undefined) return
        known++
        const realMs = (ready / history.capacity) * TICK_MS
        const lateMs = estimate - NOW - realMs
        // An estimate is rounded up to a second, and the simulation moves in ticks.
        expect(lateMs).toBeGreaterThanOrEqual(-2 * TICK_MS)
        expect(lateMs).toBeLessThanOrEqual((rate?.isLimit ? 0 : 5_000) + 1_000 + 2 * TICK_MS)
      }),
      { numRuns: 500 },
    )
    expect(known).toBeGreaterThan(100)
  })

  it('a task is never expected before it is due, nor before another one that was enqueued earlier', () => {
    fc.assert(
      fc.property(histories, fc.integer({ min: 1, max: 100_000 }), (history, delayMs) => {
        const { estimator, at } = simulate(history)
        const scheduled = estimator.expect(task({ delayMs }), at)
        const first = estimator.expect(task(), at)
        const second = estimator.expect(task(), at)
        if (scheduled !== undefined) expect(scheduled).toBeGreaterThanOrEqual(NOW + delayMs)
        if (first !== undefined && second !== undefined) expect(second).toBeGreaterThanOrEqual(first)
        if (first === undefined) expect(second).toBeUndefined()
      }),
    )
  })
})
