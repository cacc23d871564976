// Computes the ticks of a schedule, which are the times at which its tasks are due. Pure: times are passed in, in ms since 1970.
//
// Around a clock change, a cron expression works as in Vixie cron. If the seconds, minutes and hours are fixed (numbers, lists or
// ranges), each of them yields exactly one tick a day: a time that the change skips is due at the end of the gap, and a time that
// occurs twice is due the first time. If one of the three fields contains `*` or a step, the expression follows elapsed time:
// skipped times are not due, and repeated times are due twice.
//
// The library skips a fixed time in a gap if the gap ends on another day than that of the time. So it only finds the wall-clock times
// of such an expression, and wall-clock.ts finds their instants.
import { Cron } from 'croner'
import type { Cadence } from './cadence.ts'
import { wallClock } from './wall-clock.ts'

/** Returns the first tick after `after`, or undefined if there is none. */
export function nextTick(cadence: Cadence, after: number): number | undefined {
  if (!('cron' in cadence)) {
    const { everyMs, offsetMs } = cadence
    return (Math.floor((after - offsetMs) / everyMs) + 1) * everyMs + offsetMs
  }
  return ticksOf(cadence).next(after)
}

/** Returns the first `count` ticks after `after`, in ascending order. */
export function nextTicks(cadence: Cadence, after: number, count: number): readonly number[] {
  if ('cron' in cadence) {
    const { next } = ticksOf(cadence)
    return repeated(after, count, next)
  }
  const first = nextTick(cadence, after) ?? after
  return Array.from({ length: count }, (_, i) => first + i * cadence.everyMs)
}

/** Returns the newest `count` ticks after `after` and up to `until`, in ascending order. */
export function newestTicks(cadence: Cadence, after: number, until: number, count: number): readonly number[] {
  if (!('cron' in cadence)) {
    const { everyMs, offsetMs } = cadence
    const last = Math.floor((until - offsetMs) / everyMs) * everyMs + offsetMs
    return Array.from({ length: count }, (_, i) => last - (count - 1 - i) * everyMs).filter((tick) => tick > after)
  }
  // All ticks are at whole seconds.
  const beyond = Math.floor(until / 1_000) * 1_000 + 1_000
  const { previous } = ticksOf(cadence)
  return repeated(beyond, count, previous)
    .filter((tick) => tick > after)
    .reverse()
}

/** Returns `count` values, each of which is the step from the one before. Returns fewer if a step leads nowhere. */
function repeated(start: number, count: number, step: (from: number) => number | undefined): number[] {
  const values: number[] = []
  for (let at = step(start); at !== undefined && values.length < count; at = step(at)) values.push(at)
  return values
}

interface Ticks {
  /** Returns the first tick after an instant. */
  next(after: number): number | undefined
  /** Returns the last tick before an instant. */
  previous(before: number): number | undefined
}

function ticksOf(cadence: Extract<Cadence, { cron: string }>): Ticks {
  const pattern = patternOf(cadence)
  if (!isFixed(cadence.cron)) {
    return {
      next: (after) => pattern.nextRun(new Date(after))?.getTime(),
      previous: (before) => pattern.previousRuns(1, new Date(before))[0]?.getTime(),
    }
  }
  const clock = wallClock(cadence.timeZone)
  const times = patternOf({ ...cadence, timeZone: 'UTC' })
  return {
    next(after) {
      for (let time = times.nextRun(new Date(clock.at(after))); time !== null; time = times.nextRun(time)) {
        const tick = clock.firstInstant(time.getTime())
        if (tick > after) return tick
      }
      return undefined
    },
    previous(before) {
      const isBefore = (time: Date): boolean => clock.firstInstant(time.getTime()) < before
      let time = times.previousRuns(1, new Date(clock.latestUntil(before) + 1_000))[0]
      while (time !== undefined && !isBefore(time)) time = times.previousRuns(1, time)[0]
      return time === undefined ? undefined : clock.firstInstant(time.getTime())
    },
  }
}

/** Returns whether none of the seconds, minutes and hours contains `*` or a step. The names, such as `@daily`, are fixed but for one. */
function isFixed(cron: string): boolean {
  if (isNickname(cron)) return cron.trim().toLowerCase() !== '@hourly'
  return !cron
    .trim()
    .split(/\s+/)
    .slice(0, -3)
    .some((field) => /[*/]/.test(field))
}

/** Returns what is wrong with a cron expression, or undefined if it is valid. */
export function cronProblem(cron: string): string | undefined {
  // The library replaces `?` by the time at which the expression is read, which differs between processes.
  if (cron.includes('?')) return `${JSON.stringify(cron)} contains '?'; use '*' instead`
  try {
    // The library also accepts a date, which would be the only tick.
    if (!isNickname(cron) && cron.trim().split(/\s+/).length < 5) throw new Error('it has too few fields')
    patternOf({ cron, timeZone: 'UTC' })
    return undefined
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error)
    return `${JSON.stringify(cron)} is not a cron expression with 5 or 6 fields: ${reason}`
  }
}

/** Returns whether the expression is a name such as `@daily`. */
function isNickname(cron: string): boolean {
  return /^\s*@\w+\s*$/.test(cron)
}

/** Returns whether a cron expression has no tick at all, such as 30 February. */
export function neverRuns(cadence: Cadence): boolean {
  return nextTick(cadence, 0) === undefined
}

function patternOf({ cron, timeZone }: Extract<Cadence, { cron: string }>): Cron {
  // Without a function to call, the library does not set a timer.
  return new Cron(cron, { timezone: timeZone, mode: '5-or-6-parts', fixedTimeRule: 'no-wildcard' })
}
