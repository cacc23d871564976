// Defines a risk that a check has found, and how its figures are written.
import { formatDuration } from '@bullpen/contract'

export interface Risk {
  /** `error`: jobs do not run, or may be lost. `warning`: they soon may, or something is unusual. */
  readonly severity: 'error' | 'warning'
  /** What is wrong, with figures. */
  readonly problem: string
}

export function megabytes(bytes: number): string {
  return bytes < 1_000_000 ? `${Math.max(1, Math.round(bytes / 1_000))} kB` : `${decimals(bytes / 1e6)} MB`
}

/** Writes an age without more precision than a reader needs. */
export function age(ms: number): string {
  const unit = [86_400_000, 3_600_000, 60_000, 1_000].find((each) => ms >= 2 * each) ?? 1_000
  return formatDuration(Math.max(1, Math.floor(ms / unit)) * unit)
}

export function jobs(count: number, what = ''): string {
  return `${count} ${what === '' ? '' : `${what} `}${count === 1 ? 'job' : 'jobs'}`
}

function decimals(value: number): string {
  return value < 10 ? value.toFixed(1) : String(Math.round(value))
}
