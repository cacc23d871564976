// Parses how long a queue's ended tasks are kept.
import { FINAL_STATUSES, type FinalStatus } from '../task/states.ts'
import { checkOptions, type Fail } from './options.ts'
import { type Limit, limitMs } from './units/duration.ts'

/** Which ended tasks of one status are kept. A task is removed as soon as either limit applies to it. */
export interface KeptOptions {
  /** How long a task is kept after its end. Defaults to the worker's setting for the status. `'none'` means no limit. */
  readonly age?: Limit
  /**
   * How many tasks are kept, at least 1. If there are more, the tasks that ended first are removed. Defaults to 100,000 for dead,
   * cancelled and expired tasks, and to no limit for completed ones. `'none'` means no limit.
   */
  readonly count?: number | 'none'
}

export type RetentionOptions = Readonly<Partial<Record<FinalStatus, KeptOptions>>>

/** The limits that a queue's definition sets. A limit that is undefined has the worker's default. */
export type QueueRetention = Readonly<
  Partial<
    Record<FinalStatus, { readonly ageMs: number | 'none' | undefined; readonly count: number | 'none' | undefined }>
  >
>

const LIMITS: readonly string[] = ['age', 'count'] satisfies readonly (keyof KeptOptions)[]

/** `fail` throws an error that names the queue. @throws BullpenError `invalid_duration`. */
export function queueRetention(options: RetentionOptions, fail: Fail): QueueRetention {
  checkOptions('retention', options, { settings: FINAL_STATUSES }, fail)
  const parsed = Object.entries(options).map(([status, kept]) => {
    const name = `retention.${status}`
    checkOptions(name, kept, { settings: LIMITS }, fail)
    const { age, count } = kept
    if (count !== undefined && count !== 'none' && !(Number.isInteger(count) && count >= 1)) {
      fail(`${name}.count is ${JSON.stringify(count)}; expected a whole number of at least 1, or 'none'`)
    }
    return [status, Object.freeze({ ageMs: limitMs(age, `${name}.age`), count })]
  })
  return Object.freeze(Object.fromEntries(parsed) as QueueRetention)
}
