// Parses the limits of a queue, which say how much may wait in it.
import { suggestion } from './nearest.ts'

export interface QueueLimitOptions {
  /** How many tasks may be waiting, scheduled or retrying: a whole number of at least 1. By default, there is no limit. */
  readonly maxTasks?: number
}

/** The limits that a queue's definition sets. A limit that is undefined does not apply. */
export interface QueueLimits {
  readonly maxTasks: number | undefined
}

/** The name of a limit, as in the queue's definition. */
export type QueueLimitName = keyof QueueLimits

const LIMITS: readonly string[] = ['maxTasks'] satisfies readonly (keyof QueueLimitOptions)[]

/**
 * Returns the limits, or undefined if no limit is set, so that a producer decides with one comparison that nothing needs to be
 * checked. `fail` throws an error that names the queue.
 */
export function queueLimits(options: QueueLimitOptions, fail: (problem: string) => never): QueueLimits | undefined {
  // Plain JavaScript may pass any value, although the compiler accepts only the options.
  if (typeof options !== 'object' || options === null) fail(`limits is ${JSON.stringify(options)}; expected an object`)
  const unknown = Object.keys(options).find((limit) => !LIMITS.includes(limit))
  if (unknown !== undefined) {
    fail(`limits.${unknown} is not a limit; expected ${LIMITS.join(', ')}${suggestion(unknown, LIMITS)}`)
  }
  const { maxTasks } = options
  if (maxTasks !== undefined && !(Number.isSafeInteger(maxTasks) && maxTasks >= 1)) {
    fail(`limits.maxTasks is ${JSON.stringify(maxTasks)}; expected a whole number of at least 1`)
  }
  return maxTasks === undefined ? undefined : Object.freeze({ maxTasks })
}
