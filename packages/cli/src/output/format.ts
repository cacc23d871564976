// Formats counts, durations, points in time, and text from other sources.
import stringWidth from 'string-width'

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** What a reader sees as one character may consist of several code points, and a part of it is another character. */
const CHARACTERS = new Intl.Segmenter()

/** Returns a count with its noun, such as `1 pool` or `2 pools`. */
export function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`
}

/** Formats a duration in the largest unit that fits, rounded down: `850ms`, `1.2s`, `42s`, `5m`, `3h`, `2d`. */
export function formatLength(ms: number): string {
  const unit = UNITS.find(([, size]) => ms >= size)
  if (unit === undefined) return `${Math.max(0, Math.round(ms))}ms`
  const [name, size] = unit
  const tenths = Math.floor((ms / size) * 10) / 10
  return `${name === 's' && tenths < 10 ? tenths : Math.floor(tenths)}${name}`
}

/** Formats a time relative to now, such as `5m ago` or `in 30s`. */
export function relativeTime(time: string, now: number): string {
  const ms = Date.parse(time) - now
  return ms > 0 ? `in ${formatLength(ms)}` : `${formatLength(-ms)} ago`
}

/** Returns a time with its distance from now, such as `2030-12-31T09:00:00Z (in 5m)`. */
export function timeText<T extends string | undefined>(time: T, now: number): T | string {
  return time === undefined ? time : `${time} (${relativeTime(time, now)})`
}

/** The name and the text of a field. A field without a text is left out. */
export type Field = readonly [name: string, text: string | undefined]

/** Returns a line for each field. The texts begin after `width` characters and a gap. */
export function fieldLines(fields: readonly Field[], width: number): readonly string[] {
  return fields.flatMap(([name, text]) => (text ? [`${name.padEnd(width)}  ${text}`] : []))
}

/**
 * Returns text from a task or worker as a single line, cut to `maxWidth` columns of a terminal, without control characters and without
 * those that change the direction of what follows, such as U+202E.
 */
export function plain(text: string, maxWidth = Number.POSITIVE_INFINITY): string {
  const line = text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]+/gu, ' ').trim()
  if (maxWidth === Number.POSITIVE_INFINITY) return line
  let cut = ''
  let width = 0
  for (const { segment } of CHARACTERS.segment(line)) {
    width += stringWidth(segment)
    if (width > maxWidth) return `${cut}…`
    if (width < maxWidth) cut += segment
  }
  return line
}

/**
 * Returns a name that a caller has chosen, such as a concurrency key, so that it can be told from others. A name with other characters than
 * letters, digits and a few signs is quoted like a string of JavaScript, with escapes for characters that cannot be seen.
 */
export function literal(name: string): string {
  if (/^[\p{L}\p{N}._:@/+-]+$/u.test(name)) return name
  const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(name).replaceAll(/(?! )[\p{C}\p{Z}]/gu, (char) => char.split('').map(escaped).join(''))
}
