// Parses a queue's limits, which determine how many tasks may wait in it and for how long.
import { type Duration, milliseconds } from './duration.ts'
import { suggestion } from './nearest.ts'

export interface QueueLimitOptions {
  /** How many tasks may be waiting, scheduled or retrying: a whole number of at least 1. By default, there is no limit. */
  readonly maxTasks?: number
  /**
   * The longest time that the next task to start may have been waiting. Without priorities, the next task is the oldest waiting
   * one. The time begins when the task is ready, so a delay does not count. Tasks that have been started before are not considered.
   * By default, there is no limit.
   */
  readonly maxAge?: Duration
}

/** The name of a limit, as in the queue's definition. */
export type QueueLimitName = keyof QueueLimitOptions

/** The limits of a queue. A limit that is undefined does not apply. */
export interface QueueLimits {
  readonly maxTasks?: number | undefined
  readonly maxAgeMs?: number | undefined
}

const LIMITS: readonly string[] = ['maxTasks', 'maxAge'] satisfies readonly QueueLimitName[]

/**
 * Returns the limits, or undefined if no limit is set, so that a producer needs only one comparison to find that there is nothing
 * to check. `fail` throws an error that names the queue. @throws BullpenError `invalid_duration`.
 */
export function queueLimits(options: QueueLimitOptions, fail: (problem: string) => never): QueueLimits | undefined {
  // Plain JavaScript may pass any value, although the compiler accepts only the options.
  if (typeof options !== 'object' || options === null) fail(`limits is ${JSON.stringify(options)}; expected an object`)
  const unknown = Object.keys(options).find((limit) => !LIMITS.includes(limit))
  if (unknown !== undefined) {
    fail(`limits.${unknown} is not a limit; expected ${LIMITS.join(' or ')}${suggestion(unknown, LIMITS)}`)
  }
  const { maxTasks, maxAge } = options
  if (maxTasks !== undefined && !(Number.isSafeInteger(maxTasks) && maxTasks >= 1)) {
    fail(`limits.maxTasks is ${JSON.stringify(maxTasks)}; expected a whole number of at least 1`)
  }
  const maxAgeMs = maxAge === undefined ? undefined : milliseconds(maxAge, 'limits.maxAge')
  return maxTasks === undefined && maxAgeMs === undefined ? undefined : Object.freeze({ maxTasks, maxAgeMs })
}
