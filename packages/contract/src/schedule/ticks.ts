// Computes the ticks of a schedule, which are the times at which its tasks are due. Pure: times are passed in, in ms since 1970.
//
// Around a clock change, a cron expression works as in Vixie cron. If the seconds, minutes and hours are fixed (numbers, lists or
// ranges), each of them yields exactly one tick a day: a time that the change skips is due at the end of the gap, and a time that
// occurs twice is due the first time. If one of the three fields contains `*` or a step, the expression follows elapsed time:
// skipped times are not due, and repeated times are due twice.
import { Cron } from 'croner'
import type { Cadence } from './cadence.ts'

/** Returns the first tick after `after`, or undefined if there is none. */
export function nextTick(cadence: Cadence, after: number): number | undefined {
  if (!('cron' in cadence)) {
    const { everyMs, offsetMs } = cadence
    return (Math.floor((after - offsetMs) / everyMs) + 1) * everyMs + offsetMs
  }
  return patternOf(cadence).nextRun(new Date(after))?.getTime()
}

/** Returns the first `count` ticks after `after`, in ascending order. */
export function nextTicks(cadence: Cadence, after: number, count: number): readonly number[] {
  if ('cron' in cadence) {
    return patternOf(cadence)
      .nextRuns(count, new Date(after))
      .map((date) => date.getTime())
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
  // The library returns the ticks before a time. All ticks are at whole seconds.
  return patternOf(cadence)
    .previousRuns(count, new Date(Math.floor(until / 1_000) * 1_000 + 1_000))
    .map((date) => date.getTime())
    .filter((tick) => tick > after)
    .reverse()
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
