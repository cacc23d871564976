// Parses the limits that a queue has for each concurrency key.
import { checkConcurrencyKey } from '../concurrency-key.ts'
import { checkOptions, checkWhole, type Fail, isRecord } from '../options.ts'
import { ENQUEUE_RATE_FORM, type EnqueueRateText, readEnqueueRate } from './enqueue-rate.ts'

export interface ConcurrencyKeyLimitOptions {
  /**
   * How many tasks of the key may run at once, across all workers: a whole number of at least 1, or 0 for a single key that is to start no
   * task. By default, there is no limit.
   */
  readonly concurrency?: number
  /**
   * How many tasks of the key may start per period, across all workers, such as `'100/1m'`. The starts are spread evenly over the period.
   * By default, there is no limit.
   */
  readonly rate?: EnqueueRateText
  /**
   * How many of these tasks may start at once if the key has started none for some time: a whole number of at least 1. Defaults to 1.
   * Within a period, a key starts at most this number of tasks more than its rate says.
   */
  readonly burst?: number
}

export interface PerConcurrencyKeyOptions extends ConcurrencyKeyLimitOptions {
  /** The limits of single keys, for example `{ acme: { concurrency: 10 } }`. A limit that is omitted is that of every key. */
  readonly keys?: Readonly<Record<string, ConcurrencyKeyLimitOptions>>
}

/** How many tasks may start per period. */
export interface StartRate {
  readonly max: number
  readonly perMs: number
  /** How many of them may start at once. */
  readonly burst: number
}

/** The limits of a concurrency key. A limit that is undefined does not apply. */
export interface ConcurrencyKeyLimits {
  readonly concurrency?: number | undefined
  readonly rate?: StartRate | undefined
}

/** The limits of every concurrency key of a queue, and those of single keys, which replace them. */
export interface PerConcurrencyKey extends ConcurrencyKeyLimits {
  readonly keys: Readonly<Record<string, ConcurrencyKeyLimits>>
}

const LIMITS: readonly string[] = [
  'concurrency',
  'rate',
  'burst',
] satisfies readonly (keyof ConcurrencyKeyLimitOptions)[]

/** Returns the limits, or undefined if no limit is set. `fail` throws an error that names the queue. */
export function perConcurrencyKey(options: PerConcurrencyKeyOptions, fail: Fail): PerConcurrencyKey | undefined {
  const name = 'limits.perConcurrencyKey'
  const all = parseLimits(name, options, { least: 1, settings: [...LIMITS, 'keys'] }, fail)
  const { keys = {} } = options
  if (!isRecord(keys)) {
    fail(`${name}.keys is ${JSON.stringify(keys)}; expected an object such as { acme: { concurrency: 10 } }`)
  }
  const own = Object.entries(keys).flatMap(([key, given]) => {
    checkConcurrencyKey(`${name}.keys`, key, fail)
    const limits = parseLimits(`${name}.keys.${key}`, given, { least: 0, settings: LIMITS }, fail)
    return isUnlimited(limits) ? [] : [[key, limits] as const]
  })
  if (isUnlimited(all) && own.length === 0) return undefined
  return Object.freeze({ ...all, keys: Object.freeze(Object.fromEntries(own)) })
}

interface Accepted {
  /** The lowest concurrency. */
  readonly least: 0 | 1
  readonly settings: readonly string[]
}

function parseLimits(
  name: string,
  given: ConcurrencyKeyLimitOptions,
  { least, settings }: Accepted,
  fail: Fail,
): ConcurrencyKeyLimits {
  checkOptions(name, given, { settings, example: '{ concurrency: 3 }', noun: 'limit' }, fail)
  const { concurrency, rate: text, burst } = given
  if (concurrency !== undefined) checkWhole(`${name}.concurrency`, concurrency, { min: least }, fail)
  const rate = text === undefined ? undefined : readEnqueueRate(text)
  if (text !== undefined && rate === undefined) {
    fail(`${name}.rate is ${JSON.stringify(text)}; expected ${ENQUEUE_RATE_FORM}`)
  }
  if (burst !== undefined && rate === undefined) fail(`${name}.burst has no rate; set ${name}.rate as well`)
  if (burst !== undefined) checkWhole(`${name}.burst`, burst, { min: 1 }, fail)
  return Object.freeze({ concurrency, rate: rate && Object.freeze({ ...rate, burst: burst ?? 1 }) })
}

function isUnlimited({ concurrency, rate }: ConcurrencyKeyLimits): boolean {
  return concurrency === undefined && rate === undefined
}
