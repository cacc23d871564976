// Formats counts and sizes.

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

const UNITS = ['kB', 'MB', 'GB', 'TB', 'PB'] as const

/** Uses decimal units with one digit after the point, so that 1234567 is `1.2 MB`. */
export function formatBytes(bytes: number): string {
  if (bytes < 1_000) return plural(bytes, 'byte')
  // A logarithm would choose the unit before rounding, and would therefore format 999,950 as 1000.0 kB.
  let value = bytes
  for (const unit of UNITS) {
    value /= 1_000
    if (value < 999.95) return `${value.toFixed(1)} ${unit}`
  }
  return `${value.toFixed(1)} PB`
}
