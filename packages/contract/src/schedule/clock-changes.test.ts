// Compares the ticks around the clock changes of all time zones with a search minute by minute. `npm test` takes one change of each kind
// (time, weekday and length), and `npm run test:full` takes them all.
import { amount } from '@bullpen/testing'
import { expect, it } from 'vitest'
import { newestTicks, nextTick } from './ticks.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const SPAN = { from: Date.UTC(2020, 0, 1), to: Date.UTC(2036, 0, 1) }
/** No zone changes its clocks twice within this time. Morocco does so in a month. */
const PROBE_EVERY = 25 * DAY

interface Change {
  readonly timeZone: string
  /** The first instant with the new offset. */
  readonly at: number
  /** How much later than UTC the clocks are before the change, and how much they are moved forward by it, in ms. */
  readonly offset: number
  readonly gap: number
}

/** Returns the time that the clocks of a zone show, as if it were UTC. */
function clockOf(timeZone: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short', timeStyle: 'medium' })
  return (instant) => Date.parse(`${format.format(instant).replace(' ', 'T')}Z`)
}

/** Returns every distinct clock change in the years, each with one of the zones that have it. */
function clockChanges(): Change[] {
  const changes = new Map<string, Change>()
  for (const timeZone of Intl.supportedValuesOf('timeZone')) {
    const clock = clockOf(timeZone)
    let offset = clock(SPAN.from) - SPAN.from
    for (let at = SPAN.from + PROBE_EVERY; at < SPAN.to; at += PROBE_EVERY) {
      const gap = clock(at) - at - offset
      const key = `${at} ${offset} ${gap}`
      if (gap !== 0 && !changes.has(key)) {
        let [before, after] = [at - PROBE_EVERY, at]
        while (after - before > MINUTE) {
          const middle = before + Math.floor((after - before) / 2 / MINUTE) * MINUTE
          if (clock(middle) - middle === offset) before = middle
          else after = middle
        }
        changes.set(key, { timeZone, at: after, offset, gap })
      }
      offset += gap
    }
  }
  return [...changes.values()]
}

function oneOfEachKind(changes: readonly Change[]): Change[] {
  const kindOf = ({ at, offset, gap }: Change) => {
    const local = new Date(at + offset)
    return `${local.getUTCHours()}:${local.getUTCMinutes()} ${local.getUTCDay()} ${gap}`
  }
  return [...new Map(changes.map((change) => [kindOf(change), change])).values()]
}

interface Pattern {
  readonly cron: string
  /** Whether the minutes and hours are numbers, so that each of them is due exactly once a day. */
  readonly isFixed: boolean
  readonly matches: (local: Date) => boolean
}

const WEEKDAYS = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT']

/** The patterns are about the time in the middle of what the clocks skip or repeat, and about the day on which they do so. */
function patternsFor({ at, offset, gap }: Change): Pattern[] {
  const middle = new Date(at + offset + gap / 2)
  const [minute, hour, day, weekday] = [
    middle.getUTCMinutes(),
    middle.getUTCHours(),
    middle.getUTCDate(),
    middle.getUTCDay(),
  ]
  const next = (hour + 1) % 24
  const times: readonly (readonly [string, boolean, (local: Date) => boolean])[] = [
    [`${minute} ${hour}`, true, (l) => l.getUTCMinutes() === minute && l.getUTCHours() === hour],
    [
      `0,${minute} ${hour},${next}`,
      true,
      (l) => [0, minute].includes(l.getUTCMinutes()) && [hour, next].includes(l.getUTCHours()),
    ],
    ['0 0', true, (l) => l.getUTCMinutes() === 0 && l.getUTCHours() === 0],
    ['59 23', true, (l) => l.getUTCMinutes() === 59 && l.getUTCHours() === 23],
    [`*/20 ${hour}`, false, (l) => l.getUTCMinutes() % 20 === 0 && l.getUTCHours() === hour],
    [`${minute} *`, false, (l) => l.getUTCMinutes() === minute],
  ]
  const days: readonly (readonly [string, (local: Date) => boolean])[] = [
    ['* * *', () => true],
    [`* * ${WEEKDAYS[weekday]}`, (l) => l.getUTCDay() === weekday],
    [`* * ${WEEKDAYS[(weekday + 1) % 7]}`, (l) => l.getUTCDay() === (weekday + 1) % 7],
    [`${day} * *`, (l) => l.getUTCDate() === day],
    ['1 * *', (l) => l.getUTCDate() === 1],
    [`${day} * ${WEEKDAYS[(weekday + 6) % 7]}`, (l) => l.getUTCDate() === day || l.getUTCDay() === (weekday + 6) % 7],
  ]
  return times.flatMap(([time, isFixed, onTime]) =>
    days.map(([date, onDay]) => ({ cron: `${time} ${date}`, isFixed, matches: (l: Date) => onTime(l) && onDay(l) })),
  )
}

/** The rules of ticks.ts, applied to one minute after another. `local` has the time that the clocks show at each of them. */
function searched({ isFixed, matches }: Pattern, from: number, local: readonly number[]): number[] {
  const seen = new Set<number>()
  return local.flatMap((now, i) => {
    const times = isFixed && seen.has(now) ? [] : [now]
    seen.add(now)
    if (isFixed) for (let time = (local[i - 1] ?? now) + MINUTE; time < now; time += MINUTE) times.push(time)
    return times.some((time) => matches(new Date(time))) ? [from + i * MINUTE] : []
  })
}

it('the ticks around the clock changes of all time zones from 2020 to 2035 are those that a search minute by minute finds', () => {
  const changes = clockChanges()
  expect(changes.length).toBeGreaterThan(500)
  for (const change of amount({ small: 0, full: 1 }) === 1 ? changes : oneOfEachKind(changes)) {
    const [from, to] = [change.at - DAY / 2, change.at + DAY / 2]
    const clock = clockOf(change.timeZone)
    const local = Array.from({ length: (to - from) / MINUTE }, (_, i) => clock(from + i * MINUTE))
    for (const pattern of patternsFor(change)) {
      const cadence = { cron: pattern.cron, timeZone: change.timeZone }
      const expected = searched(pattern, from, local)
      const ticks: number[] = []
      for (let at = nextTick(cadence, from - 1); at !== undefined && at < to; at = nextTick(cadence, at)) ticks.push(at)
      const where = `${pattern.cron} in ${change.timeZone} around ${new Date(change.at).toISOString()}`
      expect(
        ticks.map((tick) => new Date(tick).toISOString()),
        where,
      ).toEqual(expected.map((tick) => new Date(tick).toISOString()))
      expect(newestTicks(cadence, from - 1, to - 1, expected.length + 1), where).toEqual(expected)
    }
  }
})
