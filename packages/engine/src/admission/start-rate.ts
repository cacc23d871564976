// Computes when the rate of a concurrency key allows its next start, by GCRA (the generic cell rate algorithm). Redis's scripts
// compute this in the same way (packages/bullmq/src/store/lua/includes/limits/key-limits.lua).
import type { StartRate } from '@bullpen/contract'

/** What a rate allows. Times are in ms since any fixed time. */
export interface StartTimes {
  /** When the key may start a task, or undefined if it may start one now. */
  readonly startsAt: number | undefined
  /** When the next start would be due if the starts were spread evenly. This is all that is stored between two starts. */
  readonly dueAt: number
}

/**
 * Returns when the key may start its next task. `dueAt` is the stored time, or undefined if it has passed. If it is further ahead than this
 * rate allows, it belongs to an earlier rate, and the key may start a task now.
 */
export function nextStart({ max, perMs, burst }: StartRate, dueAt: number | undefined, now: number): StartTimes {
  const interval = perMs / max
  const early = interval * (burst - 1)
  const isOfEarlierRate = dueAt !== undefined && dueAt > now + early + interval + 1
  const due = isOfEarlierRate ? now + early : (dueAt ?? now)
  return { startsAt: due - early > now ? Math.ceil(due - early) : undefined, dueAt: due }
}

/** Counts a start, and returns when the key may start its next task. */
export function afterStart(rate: StartRate, dueAt: number | undefined, now: number): StartTimes {
  const due = Math.max(nextStart(rate, dueAt, now).dueAt, now)
  return nextStart(rate, due + rate.perMs / rate.max, now)
}
