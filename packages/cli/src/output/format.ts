// Times, lengths of time and foreign text, as people read them.

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** '850ms', '1.2s', '42s', '5m', '3h', '2d': rounded down to what matters. */
export function lengthOf(ms: number): string {
  const unit = UNITS.find(([, size]) => ms >= size)
  if (unit === undefined) return `${Math.max(0, Math.round(ms))}ms`
  const [name, size] = unit
  const tenths = Math.floor((ms / size) * 10) / 10
  return `${name === 's' && tenths < 10 ? tenths : Math.floor(tenths)}${name}`
}

/** '5m ago', 'in 30s'. */
export function relative(time: string, now: number): string {
  const ms = Date.parse(time) - now
  return ms > 0 ? `in ${lengthOf(ms)}` : `${lengthOf(-ms)} ago`
}

/** On one line, without what a terminal would obey, and not longer than `most` characters. */
export function plain(text: string, most = Number.POSITIVE_INFINITY): string {
  const line = text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim()
  if (line.length <= most) return line
  return `${line.slice(0, most - 1)}…`
}
