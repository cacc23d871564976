import {
  type CatchUp,
  defineSchedule,
  defineTask,
  isFinal,
  type Overlap,
  type TaskId,
  type TaskStatus,
} from '@bullpen/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MISSED_AFTER_MS, nextStep } from './next-step.ts'
import { createdRecord, type ScheduleRecord, settingsOf } from './schedule-record.ts'
import { troublesOf } from './trouble.ts'

const task = defineTask({ name: 'test.task', queue: 'test', input: z.object({}) })
const START = Date.UTC(2026, 0, 1)
const EVERY_MS = 60_000

interface Settings {
  readonly overlap?: Overlap
  readonly catchUp?: CatchUp
  readonly jitter?: '30s' | '1h'
}

function created(settings: Settings = {}): ScheduleRecord {
  const definition = defineSchedule({ name: 'test', task, input: {}, every: '1m', ...settings })
  return createdRecord(settingsOf(definition), { source: 'api', by: 'ann', now: START })
}

/** Repeats the decision until the schedule has to wait, as the leader does. Returns the schedule and the ticks of its new runs. */
function runAt(record: ScheduleRecord, lastStatus: TaskStatus | undefined, now: number) {
  let [current, status] = [record, lastStatus]
  const runs: number[] = []
  const cancelled: TaskId[] = []
  for (;;) {
    const step = nextStep(current, status, now)
    if (step.cancel !== undefined) cancelled.push(step.cancel)
    if (step.kind === 'wait') return { record: current, status, runs, cancelled, until: step.until }
    expect(step.dueAt).toBeLessThanOrEqual(now)
    current = step.record
    if (step.run === undefined) continue
    runs.push(step.run)
    current = { ...current, lastRun: { id: `test-${step.run}` as TaskId, tick: step.run, at: now } }
    status = 'waiting'
  }
}

const ticks = (from: number, count: number) => Array.from({ length: count }, (_, i) => START + (from + i) * EVERY_MS)

describe('a tick', () => {
  it('is run once, at its time and not before', () => {
    const before = runAt(created(), undefined, START + EVERY_MS - 1)
    expect(before).toMatchObject({ runs: [], until: START + EVERY_MS })
    const after = runAt(before.record, undefined, START + EVERY_MS)
    expect(after).toMatchObject({ runs: ticks(1, 1), until: START + 2 * EVERY_MS })
    expect(runAt(after.record, 'completed', START + EVERY_MS)).toMatchObject({ runs: [] })
  })

  it('with jitter is run after the tick and before the next one, at the same time however often it is decided', () => {
    const delays = new Set<number>()
    let record = created({ jitter: '30s' })
    for (let i = 1; i <= 50; i++) {
      const tick = START + i * EVERY_MS
      const { until = 0 } = runAt(record, 'completed', tick - 1)
      expect(runAt(record, 'completed', tick - 1).until).toBe(until)
      expect(until - tick).toBeGreaterThanOrEqual(0)
      expect(until - tick).toBeLessThan(30_000)
      delays.add(until - tick)
      record = runAt(record, 'completed', until).record
    }
    expect(delays.size).toBeGreaterThan(40)
  })

  it('of a paused schedule is not run', () => {
    const paused = { ...created(), paused: { at: START, by: 'ann' } }
    expect(runAt(paused, undefined, START + 10 * EVERY_MS)).toMatchObject({ runs: [], until: undefined })
  })
})

describe('missed ticks', () => {
  const away = (catchUp: CatchUp, now: number) => runAt(created({ catchUp, overlap: 'allow' }), undefined, now)
  const late = START + 10 * EVERY_MS + MISSED_AFTER_MS + 1

  it.each([
    ['skip', [], 10],
    ['one', ticks(10, 1), 9],
    [{ max: 3 }, ticks(8, 3), 7],
    [{ max: 100 }, ticks(1, 10), undefined],
  ] as const)('are enqueued according to %j', (catchUp, runs, missed) => {
    const { record, runs: found } = away(catchUp, late)
    expect(found).toEqual(runs)
    expect(record.missedAt).toBe(missed === undefined ? undefined : START + missed * EVERY_MS)
    expect(record.next).toBe(START + 11 * EVERY_MS)
  })

  it('do not include a tick that is handled within ten seconds', () => {
    expect(away('skip', START + 10 * EVERY_MS + MISSED_AFTER_MS - 1).runs).toEqual(ticks(10, 1))
  })

  it('are not all enqueued if the jitter is longer than the interval', () => {
    const afterAnHour = (catchUp: CatchUp) =>
      runAt(created({ catchUp, jitter: '1h', overlap: 'allow' }), undefined, START + 60 * EVERY_MS + MISSED_AFTER_MS)
    // The last one or two ticks may be due at this time, or not yet.
    const { runs, record } = afterAnHour('skip')
    expect(ticks(59, 2)).toEqual(expect.arrayContaining(runs))
    expect(record.missedAt).toBeGreaterThanOrEqual(START + 58 * EVERY_MS)
    expect(afterAnHour({ max: 3 }).runs.length - runs.length).toBe(3)
  })

  it('of a year are found without examining each of them', () => {
    const { record, runs } = away({ max: 100 }, START + 365 * 86_400_000)
    // The last one is on time.
    expect(runs).toHaveLength(101)
    expect(record.missedAt).toBeGreaterThan(START)
  })
})

describe('a tick that finds the previous run unfinished', () => {
  const overlapping = (overlap: Overlap, minutes: number) => {
    let state = { ...runAt(created({ overlap }), undefined, START + EVERY_MS) }
    const runs = [...state.runs]
    for (let i = 2; i <= minutes; i++) {
      state = runAt(state.record, 'active', START + i * EVERY_MS)
      runs.push(...state.runs)
    }
    return { ...state, runs }
  }

  it('is skipped by default, and counted', () => {
    const { record, runs } = overlapping('skip', 4)
    expect(runs).toEqual(ticks(1, 1))
    expect(record).toMatchObject({ skipped: 3, waiting: [], overlappingSince: START + 2 * EVERY_MS })
  })

  it('is run if the policy is allow', () => {
    expect(overlapping('allow', 4).runs).toEqual(ticks(1, 4))
  })

  it('waits if the policy is queue, and the waiting ticks are run in order', () => {
    const { record } = overlapping('queue', 4)
    expect(record.waiting).toEqual(ticks(2, 3))
    const next = runAt(record, 'completed', START + 4 * EVERY_MS + 1)
    expect(next.runs).toEqual(ticks(2, 1))
    expect(next.record.waiting).toEqual(ticks(3, 2))
  })

  it('is skipped if a hundred runs wait', () => {
    const { record } = overlapping('queue', 105)
    expect(record).toMatchObject({ skipped: 4 })
    expect(record.waiting).toHaveLength(100)
  })

  it('cancels the previous run if the policy is cancel, and only the newest tick waits', () => {
    const { record, cancelled } = overlapping('cancel', 4)
    expect(record).toMatchObject({ waiting: ticks(4, 1), skipped: 2 })
    expect(new Set(cancelled)).toEqual(new Set([`test-${START + EVERY_MS}`]))
    expect(runAt(record, 'cancelled', START + 4 * EVERY_MS + 1).runs).toEqual(ticks(4, 1))
  })
})

it('under random events, each tick is run, skipped, missed or waiting exactly once', () => {
  fc.assert(
    fc.property(
      fc.constantFrom<Overlap>('skip', 'allow', 'queue', 'cancel'),
      fc.constantFrom<CatchUp>('skip', 'one', { max: 3 }, { max: 100 }),
      fc.array(
        fc.record({
          waitMs: fc.oneof(fc.integer({ min: 1, max: 90_000 }), fc.integer({ min: 1, max: 900_000 })),
          status: fc.constantFrom<TaskStatus>('completed', 'active', 'active', 'dead', 'retrying'),
        }),
        { maxLength: 40 },
      ),
      (overlap, catchUp, visits) => {
        let record = created({ overlap, catchUp })
        let status: TaskStatus | undefined
        let now = START
        const runs: number[] = []
        for (const visit of visits) {
          now += visit.waitMs
          if (status !== undefined && !isFinal(status)) status = visit.status
          const after = runAt(record, status, now)
          expect(after.until).toBeGreaterThan(now)
          runs.push(...after.runs)
          record = after.record
          status = after.status
        }
        expect(new Set(runs).size).toBe(runs.length)
        expect(runs).toEqual(runs.toSorted((a, b) => a - b))
        expect(record.runs).toBe(runs.length)
        const passed = Math.floor((now - START) / EVERY_MS)
        const handled = runs.length + record.skipped + record.waiting.length
        expect(handled).toBeLessThanOrEqual(passed)
        if (record.missedAt === undefined) expect(handled).toBe(passed)
      },
    ),
    { numRuns: 500 },
  )
})

describe('a schedule is in trouble', () => {
  it('as long as its last runs have failed', () => {
    let record = created()
    for (let i = 1; i <= 3; i++) record = runAt(record, i === 1 ? undefined : 'dead', START + i * EVERY_MS).record
    const now = START + 4 * EVERY_MS
    expect(troublesOf({ record, lastStatus: 'expired', now })).toMatchObject([
      { kind: 'failing', since: START + EVERY_MS, detail: 'the last 3 runs ended as dead or expired' },
    ])
    expect(troublesOf({ record, lastStatus: 'active', now })).toMatchObject([{ kind: 'failing' }])
    expect(troublesOf({ record, lastStatus: 'completed', now })).toEqual([])
  })

  it('if every tick of an hour has found the previous run unfinished', () => {
    let record = runAt(created(), undefined, START + EVERY_MS).record
    for (let i = 2; i <= 62; i++) record = runAt(record, 'active', START + i * EVERY_MS).record
    const at = (minutes: number) => troublesOf({ record, lastStatus: 'active', now: START + minutes * EVERY_MS })
    expect(at(61)).toEqual([])
    expect(at(62)).toMatchObject([{ kind: 'overlapping', since: START + 2 * EVERY_MS }])
    const ended = runAt(record, 'completed', START + 63 * EVERY_MS).record
    expect(troublesOf({ record: ended, lastStatus: 'waiting', now: START + 64 * EVERY_MS })).toEqual([])
  })

  it('if a tick was missed within the last day', () => {
    const now = START + 3_600_000
    const { record } = runAt(created(), undefined, now)
    expect(troublesOf({ record, lastStatus: 'completed', now })).toMatchObject([{ kind: 'missed' }])
    expect(troublesOf({ record, lastStatus: 'completed', now: now + 86_400_000 })).toEqual([])
  })
})
