import { amount } from '@bullpen/testing'
import { CronExpressionParser } from 'cron-parser'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Cadence } from './cadence.ts'
import { cronProblem, neverRuns, newestTicks, nextTick, nextTicks } from './ticks.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR

/** Each time zone with the two changes of its clocks in 2026. */
const ZONES = [
  { timeZone: 'America/New_York', changes: ['2026-03-08T07:00:00Z', '2026-11-01T06:00:00Z'] },
  { timeZone: 'Europe/Berlin', changes: ['2026-03-29T01:00:00Z', '2026-10-25T01:00:00Z'] },
  { timeZone: 'Australia/Sydney', changes: ['2026-04-04T16:00:00Z', '2026-10-03T16:00:00Z'] },
] as const

/** Lord Howe Island changes its clocks by 30 minutes, which the independent library does not support. */
const LORD_HOWE = {
  timeZone: 'Australia/Lord_Howe',
  changes: ['2026-04-04T15:00:00Z', '2026-10-03T15:30:00Z'],
} as const

const YEAR = { from: Date.UTC(2026, 0, 1), to: Date.UTC(2027, 0, 1) }

interface Fields {
  readonly second: readonly number[]
  readonly minute: readonly number[]
  readonly hour: readonly number[]
  readonly day: readonly number[]
  readonly month: readonly number[]
  readonly weekday: readonly number[]
  /** Whether none of the seconds, minutes and hours contains a wildcard or a step. */
  readonly isFixed: boolean
  readonly text: string
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)

/** A field with the text of a cron expression and the numbers for which it stands. */
const field = (min: number, max: number) =>
  fc.oneof(
    { weight: 3, arbitrary: fc.constant({ text: '*', values: range(min, max), isWild: true }) },
    {
      weight: 4,
      arbitrary: fc.integer({ min, max }).map((value) => ({ text: `${value}`, values: [value], isWild: false })),
    },
    {
      weight: 2,
      arbitrary: fc
        .uniqueArray(fc.integer({ min, max }), { minLength: 2, maxLength: 4 })
        .map((values) => values.toSorted((a, b) => a - b))
        .map((values) => ({ text: values.join(','), values, isWild: false })),
    },
    {
      weight: 1,
      arbitrary: fc.integer({ min: 2, max: Math.max(2, Math.floor((max - min) / 2)) }).map((step) => ({
        text: `*/${step}`,
        values: range(min, max).filter((value) => (value - min) % step === 0),
        isWild: true,
      })),
    },
  )

/** Expressions whose seconds are fixed, so that a year has at most a few hundred thousand ticks. */
const expressions = fc
  .record({
    second: fc.constantFrom(0, 0, 0, 30).map((value) => ({ text: `${value}`, values: [value], isWild: false })),
    minute: field(0, 59),
    hour: field(0, 23),
    day: fc.oneof(
      { weight: 4, arbitrary: fc.constant({ text: '*', values: range(1, 31), isWild: true }) },
      field(1, 31),
    ),
    month: fc.oneof(
      { weight: 4, arbitrary: fc.constant({ text: '*', values: range(1, 12), isWild: true }) },
      field(1, 12),
    ),
    weekday: fc.oneof(
      { weight: 4, arbitrary: fc.constant({ text: '*', values: range(0, 6), isWild: true }) },
      field(0, 6),
    ),
  })
  // With a step in one of the two, libraries differ in whether a day must match both.
  .filter(({ day, weekday }) => !(day.text.startsWith('*/') || weekday.text.startsWith('*/')))
  .map(({ second, minute, hour, day, month, weekday }): Fields => {
    const parts = [second, minute, hour, day, month, weekday]
    const text = parts.map((part) => part.text).join(' ')
    return {
      second: second.values,
      minute: minute.values,
      hour: hour.values,
      day: day.values,
      month: month.values,
      weekday: weekday.values,
      isFixed: ![second, minute, hour].some(({ isWild }) => isWild),
      text,
    }
  })

/** Returns the ticks of the cadence after `from` and before `to`, one by one. */
function ticksBetween(cadence: Cadence, from: number, to: number): number[] {
  const ticks: number[] = []
  for (let tick = nextTick(cadence, from); tick !== undefined && tick < to; tick = nextTick(cadence, tick))
    ticks.push(tick)
  return ticks
}

/** Returns the first `count` ticks after `after`, one by one. */
function following(cadence: Cadence, after: number, count: number): number[] {
  const ticks: number[] = []
  for (let at = after; ticks.length < count; at = ticks.at(-1) ?? at) ticks.push(nextTick(cadence, at) ?? Number.NaN)
  return ticks
}

/** Returns the same ticks from the independent library. */
function parsedBetween(text: string, tz: string, from: number, to: number): number[] {
  const parsed = CronExpressionParser.parse(text, { tz, currentDate: new Date(from) })
  const ticks: number[] = []
  for (;;) {
    const tick = parsed.next().getTime()
    if (tick >= to) return ticks
    ticks.push(tick)
  }
}

/** The local wall-clock time of an instant, as if it were UTC. */
function wallClock(timeZone: string): (ms: number) => number {
  const format = new Intl.DateTimeFormat('en-US-u-hc-h23', {
    timeZone,
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
  } as const)
  const offsets = new Map<number, number>()
  // Clocks change at multiples of a quarter of an hour.
  const block = HOUR / 4
  return (ms) => {
    const start = Math.floor(ms / block) * block
    const known = offsets.get(start)
    if (known !== undefined) return ms + known
    const parts = Object.fromEntries(format.formatToParts(start).map(({ type, value }) => [type, Number(value)]))
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts
    const offset = Date.UTC(year, month - 1, day, hour, minute, second) - start
    offsets.set(start, offset)
    return ms + offset
  }
}

/** Returns the ticks by examining every half minute, with the rules that ticks.ts describes. */
function examinedBetween(fields: Fields, timeZone: string, from: number, to: number): number[] {
  const wall = wallClock(timeZone)
  const isDay = (date: Date): boolean => {
    const [onDay, onWeekday] = [fields.day.includes(date.getUTCDate()), fields.weekday.includes(date.getUTCDay())]
    const [, , , day, , weekday] = fields.text.split(' ')
    const matches = day === '*' || weekday === '*' ? onDay && onWeekday : onDay || onWeekday
    return matches && fields.month.includes(date.getUTCMonth() + 1)
  }
  const matches = (local: number): boolean => {
    const date = new Date(local)
    return (
      fields.minute.includes(date.getUTCMinutes()) &&
      fields.second.includes(date.getUTCSeconds()) &&
      fields.hour.includes(date.getUTCHours()) &&
      isDay(date)
    )
  }
  const ticks = new Set<number>()
  const STEP = 30_000
  for (let at = from + STEP; at < to; at += STEP) {
    const [local, before] = [wall(at), wall(at - STEP)]
    const gap = local - before - STEP
    // A fixed time within a gap is due when the gap ends.
    if (fields.isFixed && gap > 0) {
      for (let skipped = local - gap; skipped < local; skipped += STEP) if (matches(skipped)) ticks.add(at)
    }
    if (!matches(local)) continue
    // A fixed time that occurs twice is due the first time. At most an hour is repeated.
    const isRepeated = [HOUR, HOUR / 2].some((shift) => wall(at - shift) === local)
    if (!(fields.isFixed && isRepeated)) ticks.add(at)
  }
  return [...ticks]
}

describe.each(ZONES)('in $timeZone, a year', ({ timeZone, changes }) => {
  const nearChanges = changes.map((change) => Date.parse(change))

  it('has the ticks that an independent library computes, except within an hour of the two changes', () => {
    fc.assert(
      fc.property(expressions, ({ text }) => {
        const cadence = { cron: text, timeZone }
        fc.pre(!neverRuns(cadence))
        // A dense expression is compared in the days around each change, and a sparse one in the whole year.
        const isDense = (nextTicks(cadence, YEAR.from, 100).at(-1) ?? YEAR.to) < YEAR.from + 30 * DAY
        const spans = isDense
          ? nearChanges.map((at) => ({ from: at - DAY / 2, to: at + DAY / 2 }))
          : [{ from: YEAR.from - 1_000, to: YEAR.to }]
        const isUsual = (tick: number): boolean => nearChanges.every((at) => Math.abs(tick - at) > HOUR)
        for (const { from, to } of spans) {
          const [ours, theirs] = [ticksBetween(cadence, from, to), parsedBetween(text, timeZone, from, to)]
          expect(ours.filter(isUsual)).toEqual(theirs.filter(isUsual))
        }
      }),
      { numRuns: amount({ small: 6, full: 50 }), seed: 1 },
    )
  })
})

describe.each([...ZONES, LORD_HOWE])('in $timeZone', ({ timeZone, changes }) => {
  it('the ticks in the hours of a change are those that are found by examining every half minute', () => {
    fc.assert(
      fc.property(expressions, (fields) => {
        const cadence = { cron: fields.text, timeZone }
        fc.pre(!neverRuns(cadence))
        for (const at of changes.map((change) => Date.parse(change))) {
          const [from, to] = [at - 4 * HOUR, at + 4 * HOUR]
          expect(ticksBetween(cadence, from, to)).toEqual(examinedBetween(fields, timeZone, from, to))
        }
      }),
      { numRuns: amount({ small: 15, full: 200 }), seed: 2 },
    )
  })
})

it('an expression whose hours are not restricted has the same ticks as in an independent library, even when the clocks change', () => {
  for (const { timeZone, changes } of ZONES) {
    for (const text of ['*/10 * * * * *', '0 */7 * * * *', '15,45 * * * *', '59 59 * * * *']) {
      for (const change of changes) {
        const [from, to] = [Date.parse(change) - 2 * HOUR, Date.parse(change) + 2 * HOUR]
        expect(ticksBetween({ cron: text, timeZone }, from, to)).toEqual(parsedBetween(text, timeZone, from, to))
      }
    }
  }
})

it('a fixed time that the clocks skip is due at the end of the gap, and one that occurs twice is due the first time', () => {
  const timeZone = 'America/New_York'
  const onDay = (cron: string, day: string) => {
    const from = Date.parse(`${day}T04:00:00Z`)
    return ticksBetween({ cron, timeZone }, from, from + DAY).map((tick) => new Date(tick).toISOString().slice(11, 16))
  }
  expect(onDay('30 2 * * *', '2026-03-08')).toEqual(['07:00'])
  expect(onDay('30 1 * * *', '2026-11-01')).toEqual(['05:30'])
  expect(onDay('30 2,14 * * *', '2026-03-08')).toEqual(['07:00', '18:30'])
  expect(onDay('30 1,13 * * *', '2026-11-01')).toEqual(['05:30', '18:30'])
  expect(onDay('*/30 2 * * *', '2026-03-08')).toEqual([])
  expect(onDay('*/30 1 * * *', '2026-11-01')).toEqual(['05:00', '05:30', '06:00', '06:30'])
})

it.each([
  ['Pacific/Apia', '0 9 * * *', '2011-12-29', ['2011-12-29T19:00', '2011-12-30T10:00', '2011-12-30T19:00']],
  ['Asia/Pyongyang', '45 23 * * *', '2018-05-04', ['2018-05-04T15:00', '2018-05-05T14:45']],
  ['America/Nuuk', '30 23 * * SAT', '2027-03-27', ['2027-03-28T01:00']],
])('in %s, a time in a gap that ends on another day is due at the end of the gap', (timeZone, cron, day, expected) => {
  const from = Date.parse(day)
  const ticks = ticksBetween({ cron, timeZone }, from, from + 2 * DAY)
  expect(ticks.map((tick) => new Date(tick).toISOString().slice(0, 16))).toEqual(expect.arrayContaining(expected))
  expect(ticks.length).toBeLessThanOrEqual(3)
})

it('the newest ticks are the last ones up to a time', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc
          .constantFrom('*/10 * * * * *', '0 3 * * *', '*/7 * * * *')
          .map((cron) => ({ cron, timeZone: 'Europe/Berlin' })),
        fc.record({ everyMs: fc.integer({ min: 1_000, max: HOUR }), offsetMs: fc.integer({ min: 0, max: 999 }) }),
      ),
      fc.integer({ min: 0, max: HOUR }),
      fc.integer({ min: 1, max: 5 }),
      (cadence, length, count) => {
        const after = Date.UTC(2026, 4, 5, 0, 59, 58)
        const until = after + length
        expect(newestTicks(cadence, after, until, count)).toEqual(ticksBetween(cadence, after, until + 1).slice(-count))
        expect(nextTicks(cadence, after, count)).toEqual(following(cadence, after, count))
      },
    ),
    { numRuns: 200 },
  )
})

it.each(['60 * * * *', 'a b', '', '* * * * * * *', '0 0 ? * *', '* * *', '2030-01-01T00:00:00', '@reboot'])(
  '%j is not a cron expression',
  (cron) => {
    expect(cronProblem(cron)).toContain(JSON.stringify(cron))
  },
)

it.each(['@daily', ' @hourly ', '  0  0 L * *', '0 9 * * MON#2', '*/5 * * * * *'])(
  '%j is a cron expression',
  (cron) => {
    expect(cronProblem(cron)).toBeUndefined()
    expect(neverRuns({ cron, timeZone: 'UTC' })).toBe(false)
  },
)

it('an expression that matches no date never runs', () => {
  expect(neverRuns({ cron: '0 0 30 2 *', timeZone: 'UTC' })).toBe(true)
})
