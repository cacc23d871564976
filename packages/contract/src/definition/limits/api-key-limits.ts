// Parses the limits that a queue has for each API key.
import { checkOptions, checkWhole, type Fail } from '../options.ts'
import { ENQUEUE_RATE_FORM, type EnqueueRate, type EnqueueRateText, readEnqueueRate } from './enqueue-rate.ts'

export interface ApiKeyLimitOptions {
  /** How many tasks each API key may enqueue into the queue per period, such as `'100/1s'`. By default, there is no limit. */
  readonly enqueueRate?: EnqueueRateText
  /**
   * How many tasks of each API key may be in the queue until they end, including running ones: a whole number of at least 1. The child
   * tasks of a key's tasks, in whatever queue these are, count for the same key, but are never refused. By default, there is no limit.
   */
  readonly maxUnfinishedTasks?: number
}

/** The limits of an API key in a queue. A limit that is undefined does not apply. */
export interface ApiKeyLimits {
  readonly enqueueRate?: EnqueueRate | undefined
  readonly maxUnfinishedTasks?: number | undefined
}

const LIMITS: readonly string[] = ['enqueueRate', 'maxUnfinishedTasks'] satisfies readonly (keyof ApiKeyLimitOptions)[]

/** Returns the limits, or undefined if no limit is set. `fail` throws an error that names the queue. */
export function apiKeyLimits(options: ApiKeyLimitOptions, fail: Fail): ApiKeyLimits | undefined {
  const expected = LIMITS.join(' or ')
  checkOptions('limits.perApiKey', options, { settings: LIMITS, noun: 'limit', expected }, fail)
  const { enqueueRate: text, maxUnfinishedTasks } = options
  if (maxUnfinishedTasks !== undefined)
    checkWhole('limits.perApiKey.maxUnfinishedTasks', maxUnfinishedTasks, { min: 1 }, fail)
  const enqueueRate = text === undefined ? undefined : readEnqueueRate(text)
  if (text !== undefined && enqueueRate === undefined) {
    fail(`limits.perApiKey.enqueueRate is ${JSON.stringify(text)}; expected ${ENQUEUE_RATE_FORM}`)
  }
  const isUnlimited = enqueueRate === undefined && maxUnfinishedTasks === undefined
  return isUnlimited ? undefined : Object.freeze({ enqueueRate, maxUnfinishedTasks })
}
