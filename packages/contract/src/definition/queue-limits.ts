// Parses the limits of a queue, which say how much may wait in it.
import { type Duration, milliseconds } from './duration.ts'
import { suggestion } from './nearest.ts'

export interface QueueLimitOptions {
  /** How many tasks may be waiting, scheduled or retrying: a whole number of at least 1. By default, there is no limit. */
  readonly maxTasks?: number
  /**
   * How long the task that starts next may have been waiting. Without priorities, that is the oldest waiting task. The time begins
   * when the task is ready: a delay does not count, and a task that has been started before is not considered. By default, there is
   * no limit.
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
 * Returns the limits, or undefined if no limit is set, so that a producer decides with one comparison that nothing needs to be
 * checked. `fail` throws an error that names the queue. @throws BullpenError `invalid_duration`.
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
