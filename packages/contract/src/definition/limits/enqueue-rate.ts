// Parses how many tasks may be enqueued per period, such as '100/1s'.
import { type Duration, formatDuration, milliseconds } from '../units/duration.ts'

/** A number of tasks per period: `'100/1s'`, `'5000/1m'`. */
export type EnqueueRateText = `${number}/${Duration}`

/**
 * A token bucket that limits how fast tasks are enqueued. It starts with `max` tokens and is refilled at a steady rate of `max` tokens
 * every `perMs`. Each task takes a token, so up to `max` tasks can be enqueued at once.
 */
export interface EnqueueRate {
  readonly max: number
  readonly perMs: number
}

/** The maximum number of tasks per period. */
export const MAX_ENQUEUE_RATE = 1_000_000

export const ENQUEUE_RATE_FORM = "a number of tasks per period, such as '100/1s'"

/** Returns undefined unless `text` is a whole number from 1 to {@link MAX_ENQUEUE_RATE}, a slash and a duration. */
export function readEnqueueRate(text: unknown): EnqueueRate | undefined {
  const [, digits, per] = (typeof text === 'string' ? /^([1-9]\d{0,6})\/(\S+)$/.exec(text) : null) ?? []
  const max = Number(digits)
  if (per === undefined || max > MAX_ENQUEUE_RATE) return undefined
  try {
    return { max, perMs: milliseconds(per) }
  } catch {
    return undefined
  }
}

/** Formats a rate for people, such as `100 tasks per 1s`. */
export function formatEnqueueRate({ max, perMs }: EnqueueRate): string {
  return `${max} ${max === 1 ? 'task' : 'tasks'} per ${formatDuration(perMs)}`
}
