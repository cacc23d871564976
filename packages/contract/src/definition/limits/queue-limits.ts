// Parses a queue's limits, which determine how many tasks may wait in it, how much they may take, and for how long.
import { checkOptions, checkWhole, type Fail } from '../options.ts'
import { bytes, type Memory } from '../units/bytes.ts'
import { type Duration, milliseconds } from '../units/duration.ts'
import { type ApiKeyLimitOptions, type ApiKeyLimits, apiKeyLimits } from './api-key-limits.ts'
import type { PerConcurrencyKeyOptions } from './concurrency-key-limits.ts'
import type { SharedPermits } from './permits.ts'

export interface QueueLimitOptions {
  /** How many tasks may be waiting, scheduled or retrying: a whole number of at least 1. By default, there is no limit. */
  readonly maxTasks?: number
  /**
   * How much memory the unfinished tasks may take in Redis: an amount such as `'64MiB'`, or a number of bytes. What counts is the
   * stored string of each task, which contains its input and metadata, plus 512 bytes for what Redis stores in addition to the
   * string. Defaults to half of Redis's memory, or the producer's `queueMemoryShare`.
   */
  readonly maxBytes?: Memory | number
  /**
   * The longest time that the next task to start may have been waiting. Without priorities, the next task is the oldest waiting
   * one. The time begins when the task is ready, so a delay does not count. Tasks that have been started before are not considered.
   * By default, there is no limit.
   */
  readonly maxAge?: Duration
  /** The limits of each API key in this queue, for example `{ enqueueRate: '100/1s' }`. By default, there are no such limits. */
  readonly perApiKey?: ApiKeyLimitOptions
  /**
   * How many tasks of each concurrency key may run at once and start per period, across all workers, for example `{ concurrency: 3, rate:
   * '100/1m', burst: 10, keys: { acme: { concurrency: 10 } } }`. Tasks that may not start wait without a slot, and do not hold up those of
   * other keys. The queue's concurrency keys then take turns, as with `fairness: true`. Unlike the other limits, these refuse no task. By
   * default, there are no such limits.
   */
  readonly perConcurrencyKey?: PerConcurrencyKeyOptions
  /**
   * The permits of resources that the queue's tasks use, by name, for example `{ db: 10 }`. A task whose definition needs
   * permits (see `permits` of a task) starts when all of them are free, and gives them back when its attempt ends. To split a
   * resource between several queues, give each of them a share: `{ db: { total: 10, share: 0.3 } }` gives this queue 3 of 10.
   * Tasks are never rejected for lack of permits. By default, a queue has none.
   */
  readonly permits?: Readonly<Record<string, number | SharedPermits>>
}

/** The name of a limit on what is in a queue, as in the queue's definition. The last one belongs to each API key. */
export type QueueLimitName =
  | Exclude<keyof QueueLimitOptions, 'perApiKey' | 'perConcurrencyKey' | 'permits'>
  | 'maxUnfinishedTasks'

/** The limits that refuse tasks of a queue. A limit that is undefined does not apply. */
export interface QueueLimits {
  readonly maxTasks?: number | undefined
  readonly maxBytes?: number | undefined
  readonly maxAgeMs?: number | undefined
  readonly perApiKey?: ApiKeyLimits | undefined
}

const LIMITS: readonly string[] = [
  'maxTasks',
  'maxBytes',
  'maxAge',
  'perApiKey',
  'perConcurrencyKey',
  'permits',
] satisfies readonly (keyof QueueLimitOptions)[]

/**
 * Returns the limits that refuse tasks, or undefined if none of them is set, so that a producer needs only one comparison to
 * find that there is nothing to check. `fail` throws an error that names the queue. @throws BullpenError `invalid_duration`, or
 * `invalid_definition` if an amount of memory has no unit.
 */
export function queueLimits(options: QueueLimitOptions, fail: Fail): QueueLimits | undefined {
  const expected = 'maxTasks, maxBytes, maxAge, perApiKey, perConcurrencyKey or permits'
  checkOptions('limits', options, { settings: LIMITS, noun: 'limit', expected }, fail)
  const { maxTasks, maxAge } = options
  if (maxTasks !== undefined) checkWhole('limits.maxTasks', maxTasks, { min: 1 }, fail)
  const maxBytes = maxBytesOf(options.maxBytes, fail)
  const maxAgeMs = maxAge === undefined ? undefined : milliseconds(maxAge, 'limits.maxAge')
  const perApiKey = options.perApiKey === undefined ? undefined : apiKeyLimits(options.perApiKey, fail)
  const limits = { maxTasks, maxBytes, maxAgeMs, perApiKey }
  return Object.values(limits).every((limit) => limit === undefined) ? undefined : Object.freeze(limits)
}

function maxBytesOf(given: Memory | number | undefined, fail: Fail): number | undefined {
  if (typeof given === 'string') return bytes(given, 'limits.maxBytes')
  if (given === undefined || (Number.isSafeInteger(given) && given >= 1)) return given
  return fail(`limits.maxBytes is ${JSON.stringify(given)}; expected an amount such as '64MiB', or a number of bytes`)
}
