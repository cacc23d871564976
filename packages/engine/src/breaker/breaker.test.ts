// Tests circuit breakers: when they open, how tasks probe a service, and what random starts, ends and settings by hand
// can never do.
import type { BreakerMode, BreakerSettings } from '@bullpen/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  admit,
  advance,
  type Breaker,
  BUCKETS,
  callsIn,
  newBreaker,
  OPEN_JITTER,
  openMs,
  record,
  setMode,
  startsAt,
} from './breaker.ts'

const START = 1_700_000_000_000
const SETTINGS: BreakerSettings = {
  failureRate: 0.5,
  slowCallMs: 1_000,
  slowCallRate: 0.5,
  minimumCalls: 4,
  windowMs: 10_000,
  openMs: 2_000,
  maxOpenMs: 10_000,
  probes: 2,
  failureCodes: undefined,
}

type Ended = 'succeed' | 'fail' | 'slow'

/** Applies what happens to one breaker. Times are in ms from the start of the test. */
function trial(settings: Partial<BreakerSettings> = {}, random = () => 0) {
  const all = { ...SETTINGS, ...settings }
  let breaker: Breaker = newBreaker(START)
  return {
    get breaker() {
      return breaker
    },
    state: (at: number) => advance(breaker, START + at, all).state,
    /** Returns the generation of the attempt that starts, or undefined if none may start. */
    start(at: number) {
      const admitted = admit(breaker, START + at, all)
      breaker = admitted ?? breaker
      return admitted?.generation
    },
    end(at: number, generation: number | undefined, ended: Ended) {
      if (generation === undefined) throw new Error('no task could start')
      const call = { generation, failed: ended === 'fail', slow: ended === 'slow' }
      breaker = record(breaker, call, START + at, all, random)
      return breaker.state
    },
    /** Starts and ends a task. */
    call(at: number, ended: Ended) {
      return this.end(at, this.start(at), ended)
    },
    set(at: number, mode: BreakerMode) {
      breaker = setMode(breaker, mode, START + at)
      return breaker.state
    },
    startsAt(at: number) {
      const time = startsAt(breaker, START + at, all)
      return time === 'none' ? time : time - START
    },
    counted: (at: number) => callsIn(breaker.state === 'closed' ? breaker.buckets : [], START + at, all),
    /** Lets the breaker open at this time. */
    trip(at: number) {
      for (let i = 0; i < all.minimumCalls; i++) this.call(at, 'fail')
    },
  }
}

describe('a closed breaker', () => {
  it('opens at the failure rate, once there are enough calls', () => {
    const few = trial()
    expect(['fail', 'fail', 'fail'].map((end) => few.call(0, end as Ended))).toEqual(['closed', 'closed', 'closed'])
    // The fourth call makes three failures of four.
    expect(few.call(0, 'succeed')).toBe('open')
    const below = trial()
    const ends: Ended[] = ['succeed', 'succeed', 'succeed', 'fail', 'fail']
    expect(ends.map((end) => below.call(0, end))).toEqual(Array(5).fill('closed'))
    expect(below.call(0, 'fail')).toBe('open')
  })

  it('opens at the rate of slow calls', () => {
    const breaker = trial()
    const ends: Ended[] = ['succeed', 'slow', 'succeed']
    expect(ends.map((end) => breaker.call(0, end))).toEqual(['closed', 'closed', 'closed'])
    expect(breaker.call(0, 'slow')).toBe('open')
  })

  it('forgets calls that are older than its window, bucket by bucket', () => {
    const breaker = trial()
    for (const at of [0, 999, 1_000]) breaker.call(at, 'fail')
    expect(breaker.counted(9_999)).toEqual({ calls: 3, failures: 3, slow: 0 })
    expect(breaker.counted(10_000)).toEqual({ calls: 1, failures: 1, slow: 0 })
    expect(breaker.call(10_000, 'fail')).toBe('closed')
    expect(breaker.counted(20_000)).toEqual({ calls: 0, failures: 0, slow: 0 })
  })

  it('stores at most ten buckets, however many calls there are', () => {
    const breaker = trial({ minimumCalls: 1_000_000 })
    for (let at = 0; at < 60_000; at += 100) breaker.call(at, 'fail')
    expect(breaker.breaker).toMatchObject({ state: 'closed', buckets: { length: BUCKETS } })
  })

  it('does not count the attempts that started before it last opened', () => {
    const breaker = trial()
    const late = Array.from({ length: 10 }, () => breaker.start(0))
    breaker.trip(0)
    for (const _ of [1, 2]) breaker.call(2_000, 'succeed')
    expect(breaker.state(2_000)).toBe('closed')
    for (const generation of late) expect(breaker.end(2_001, generation, 'fail')).toBe('closed')
    expect(breaker.counted(2_001).calls).toBe(0)
  })
})

describe('an open breaker', () => {
  it('lets no task start until its time has passed', () => {
    const breaker = trial()
    breaker.trip(0)
    expect(breaker.startsAt(0)).toBe(2_000)
    expect(breaker.start(1_999)).toBeUndefined()
    expect(breaker.start(2_500)).toBeDefined()
    expect(breaker.breaker).toMatchObject({ state: 'half_open', since: START + 2_000 })
  })

  it('ignores the attempts that were still running', () => {
    const breaker = trial()
    const running = Array.from({ length: 3 }, () => breaker.start(0))
    breaker.trip(0)
    const { breaker: opened } = breaker
    for (const generation of running) breaker.end(1, generation, 'succeed')
    expect(breaker.breaker).toBe(opened)
    expect(breaker.start(2_000)).toBeDefined()
    for (const generation of running) expect(breaker.end(2_001, generation, 'succeed')).toBe('half_open')
    expect(breaker.breaker).toMatchObject({ succeeded: 0 })
  })

  it('stays open twice as long after each failed probe, up to the maximum, and as long as at first after it has closed', () => {
    const breaker = trial({ probes: 1 })
    breaker.trip(0)
    const waits: number[] = []
    let at = 0
    for (let i = 0; i < 5; i++) {
      const next = breaker.startsAt(at) as number
      waits.push(next - at)
      at = next
      breaker.call(at, 'fail')
    }
    expect(waits).toEqual([2_000, 4_000, 8_000, 10_000, 10_000])
    at = breaker.startsAt(at) as number
    expect(breaker.call(at, 'succeed')).toBe('closed')
    breaker.trip(at)
    expect((breaker.startsAt(at) as number) - at).toBe(2_000)
  })

  it('waits up to a tenth longer at random, and never less', () => {
    for (const random of [0, 0.5, 1 - Number.EPSILON]) {
      const breaker = trial({}, () => random)
      breaker.trip(0)
      expect(breaker.startsAt(0)).toBe(2_000 + Math.ceil(200 * random))
    }
  })

  it('waits no longer than the maximum if the clock of the store steps back', () => {
    const breaker = trial()
    breaker.trip(3_600_000)
    expect(breaker.state(3_590_000)).toBe('half_open')
    expect(breaker.state(3_599_000)).toBe('open')
  })
})

describe('a half-open breaker', () => {
  const halfOpen = (settings: Partial<BreakerSettings> = {}) => {
    const breaker = trial(settings)
    breaker.trip(-2_000)
    return breaker
  }

  it('lets as many tasks probe as its settings say, and closes when they have succeeded', () => {
    const breaker = halfOpen()
    const probes = [breaker.start(0), breaker.start(0), breaker.start(1_000)]
    expect(probes[2]).toBeUndefined()
    expect(breaker.end(1_000, probes[0], 'succeed')).toBe('half_open')
    expect(breaker.start(1_000)).toBeUndefined()
    expect(breaker.end(1_000, probes[1], 'succeed')).toBe('closed')
    expect(breaker.start(1_000)).toBeDefined()
  })

  it.each(['fail', 'slow'] as const)('opens if a probe ends with %s, and ignores the others', (ended) => {
    const breaker = halfOpen()
    const [first, second] = [breaker.start(0), breaker.start(0)]
    expect(breaker.end(1, first, ended)).toBe('open')
    const { breaker: opened } = breaker
    breaker.end(2, second, 'fail')
    expect(breaker.breaker).toBe(opened)
  })

  it('lets other tasks probe in the next period if the first ones show nothing', () => {
    const breaker = halfOpen()
    // The period begins with the first probe, and lasts as long as the breaker was open.
    breaker.start(500)
    breaker.start(2_400)
    expect(breaker.startsAt(2_400)).toBe(2_500)
    expect(breaker.start(2_499)).toBeUndefined()
    expect(breaker.start(2_500)).toBeDefined()
    expect(breaker.startsAt(2_500)).toBe(2_500)
  })

  it('counts a probe that takes longer than its period', () => {
    const slow = halfOpen()
    const probes = [slow.start(0), slow.start(0)]
    expect(slow.start(2_000)).toBeDefined()
    expect(probes.map((probe) => slow.end(2_500, probe, 'succeed'))).toEqual(['half_open', 'closed'])
  })
})

describe('a breaker that is set by hand', () => {
  it('stays open until it is set to auto, and then begins with probes', () => {
    const breaker = trial()
    const running = breaker.start(0)
    expect(breaker.set(0, 'open')).toBe('open')
    expect(breaker.start(1e9)).toBeUndefined()
    expect(breaker.startsAt(1e9)).toBe('none')
    expect(breaker.end(1, running, 'succeed')).toBe('open')
    expect(breaker.set(2, 'auto')).toBe('half_open')
    expect(breaker.end(2, running, 'fail')).toBe('half_open')
    expect([breaker.call(2, 'succeed'), breaker.call(2, 'succeed')]).toEqual(['half_open', 'closed'])
  })

  it('stays closed although calls fail, and opens with the next call once it is set to auto', () => {
    const breaker = trial()
    breaker.set(0, 'closed')
    for (let i = 0; i < 10; i++) expect(breaker.call(0, 'fail')).toBe('closed')
    expect(breaker.counted(0)).toEqual({ calls: 10, failures: 10, slow: 0 })
    expect(breaker.set(1, 'auto')).toBe('closed')
    expect(breaker.call(1, 'succeed')).toBe('open')
  })

  it('closes at once, whatever its state was', () => {
    const breaker = trial()
    breaker.trip(0)
    expect(breaker.set(1, 'closed')).toBe('closed')
    expect(breaker.start(1)).toBeDefined()
  })

  it('does not change if it is set to its mode again', () => {
    const { breaker } = trial()
    expect(setMode(breaker, 'auto', START + 1)).toBe(breaker)
  })
})

interface Step {
  readonly afterMs: number
  readonly does: 'start' | 'vanish' | Ended | BreakerMode
  /** Which of the running attempts ends. */
  readonly which: number
}

const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    afterMs: fc.oneof({ weight: 9, arbitrary: fc.nat(300) }, { weight: 1, arbitrary: fc.nat(6_000) }),
    does: fc.oneof(
      {
        weight: 40,
        arbitrary: fc.constantFrom<Step['does'][]>('start', 'start', 'start', 'succeed', 'fail', 'slow', 'vanish'),
      },
      { weight: 1, arbitrary: fc.constantFrom<Step['does'][]>('auto', 'auto', 'open', 'closed') },
    ),
    which: fc.nat(1_000),
  }),
  { maxLength: 250, size: 'max' },
)

const randomSettings: fc.Arbitrary<BreakerSettings> = fc.record({
  failureRate: fc.constantFrom(0.1, 0.3, 0.5, 1),
  slowCallMs: fc.constant(1),
  slowCallRate: fc.constantFrom(0.2, 1),
  minimumCalls: fc.constantFrom(1, 3, 7),
  windowMs: fc.constantFrom(1_000, 5_005, 60_000),
  openMs: fc.constantFrom(1_000, 3_000),
  maxOpenMs: fc.constantFrom(3_000, 9_000),
  probes: fc.constantFrom(1, 2, 5),
  failureCodes: fc.constant(undefined),
})

/** What has happened to a breaker so far. Nothing is forgotten, and every expectation is computed from all of it. */
interface History {
  /** The calls that the current closed state has counted. */
  readonly counted: { readonly at: number; readonly ended: Ended }[]
  /** The starts of the current half-open state, by the generation of their period. */
  readonly probes: Map<number, number[]>
  succeeded: number
}

/** Whether a closed breaker must open. The settings count a call from the beginning of its bucket. */
function mustOpen(counted: History['counted'], now: number, settings: BreakerSettings): boolean {
  const bucketOf = (at: number) => Math.floor(at / Math.ceil(settings.windowMs / BUCKETS))
  const recent = counted.filter(({ at }) => bucketOf(at) > bucketOf(now) - BUCKETS)
  const share = (ended: Ended) => recent.filter((call) => call.ended === ended).length / recent.length
  if (recent.length < settings.minimumCalls) return false
  return share('fail') >= settings.failureRate || share('slow') >= settings.slowCallRate
}

function expectStart(before: Breaker, after: Breaker | undefined, now: number, all: BreakerSettings, past: History) {
  if (before.mode === 'closed') expect(after).toBe(before)
  if (before.mode === 'open') expect(after).toBeUndefined()
  if (before.state === 'open' && before.until !== 'none') expect(after !== undefined).toBe(now >= before.until)
  if (after?.state === 'half_open') {
    const probes = past.probes.get(after.generation) ?? []
    past.probes.set(after.generation, [...probes, now])
    expect(probes.length).toBeLessThan(all.probes)
    const begins = [...past.probes.values()].map(([first = 0]) => first)
    for (const [i, begin] of begins.entries()) {
      const previous = begins[i - 1]
      if (previous !== undefined) expect(begin - previous).toBeGreaterThanOrEqual(openMs(after.openings, all))
    }
  }
  if (before.state === 'half_open' && after === undefined) {
    const [first = now] = past.probes.get(before.generation) ?? []
    expect(past.probes.get(before.generation)?.length).toBe(all.probes)
    expect(now - first).toBeLessThan(openMs(before.openings, all))
  }
}

function expectEnd(
  before: Breaker,
  after: Breaker,
  { ended, generation, now }: { readonly ended: Ended; readonly generation: number; readonly now: number },
  all: BreakerSettings,
  past: History,
) {
  const since = before.state === 'half_open' ? before.from : before.generation
  if (before.state === 'open' || generation < since) {
    expect(after).toBe(before)
    return
  }
  if (before.state === 'closed') {
    past.counted.push({ at: now, ended })
    expect(after.state).toBe(before.mode === 'auto' && mustOpen(past.counted, now, all) ? 'open' : 'closed')
  } else if (ended === 'succeed') {
    past.succeeded++
    expect(after.state).toBe(past.succeeded >= all.probes ? 'closed' : 'half_open')
  } else {
    expect(after).toMatchObject({ state: 'open', openings: before.openings + 1 })
  }
  if (after.state === 'open' && after.until !== 'none') {
    const openFor = openMs(after.openings, all)
    expect(after.until - now).toBeGreaterThanOrEqual(openFor)
    expect(after.until - now).toBeLessThanOrEqual(Math.ceil(openFor * (1 + OPEN_JITTER)))
  }
}

function run(settings: BreakerSettings, program: readonly Step[], random: () => number): void {
  let breaker: Breaker = newBreaker(START)
  let now = START
  const running: number[] = []
  const past: History = { counted: [], probes: new Map(), succeeded: 0 }
  const become = (after: Breaker): void => {
    // Each transition has a generation of its own, so none is lost or made twice.
    const isSame = after.state === breaker.state && after.generation === breaker.generation
    if (!isSame) expect(after.generation).toBe(breaker.generation + 1)
    if (after.state !== breaker.state || (after.state === 'closed' && !isSame)) {
      past.counted.length = 0
      past.succeeded = 0
      if (after.state !== 'half_open') past.probes.clear()
    }
    breaker = after
  }
  for (const { afterMs, does, which } of program) {
    now += afterMs
    if (does === 'start') {
      const after = admit(breaker, now, settings)
      expectStart(breaker, after, now, settings, past)
      if (after === undefined) continue
      running.push(after.generation)
      become(after)
    } else if (does === 'auto' || does === 'open' || does === 'closed') {
      become(setMode(breaker, does, now))
      expect(breaker.mode).toBe(does)
    } else {
      const [generation] = running.splice(which % Math.max(1, running.length), 1)
      if (generation === undefined || does === 'vanish') continue
      const call = { generation, failed: does === 'fail', slow: does === 'slow' }
      const after = record(breaker, call, now, settings, random)
      expectEnd(breaker, after, { ended: does, generation, now }, settings, past)
      become(after)
    }
    if (breaker.state === 'closed') expect(breaker.buckets.length).toBeLessThanOrEqual(BUCKETS)
  }
  // Whatever has happened, the breaker closes once the service works.
  if (breaker.mode !== 'auto') breaker = setMode(breaker, 'auto', now)
  for (let i = 0; i <= settings.probes && breaker.state !== 'closed'; i++) {
    now = startsAt(breaker, now, settings) as number
    breaker = admit(breaker, now, settings) as Breaker
    const call = { generation: breaker.generation, failed: false, slow: false }
    breaker = record(breaker, call, now, settings, random)
  }
  expect(breaker.state).toBe('closed')
}

describe('a breaker with random calls', () => {
  it('opens and closes exactly when it must, never lets more tasks probe than allowed, and always closes in the end', () => {
    const property = fc.property(
      randomSettings,
      steps,
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (all, program, part) => run(all, program, () => part),
    )
    fc.assert(property, { numRuns: 400 })
  })
})
