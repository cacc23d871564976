// Defines a task's retry policy: the number of attempts, the delays between them, the budget for retries, and the bounds within
// which a call may override the policy.
import { BullpenError } from '../../errors/errors.ts'
import { nearest } from '../nearest.ts'
import { type Fail, isRecord } from '../options.ts'
import { type Duration, milliseconds } from '../units/duration.ts'
import { RETRY_BOUNDS_SETTINGS, type RetryBounds, type RetryBoundsOptions, retryBounds } from './retry-bounds.ts'
import {
  DEFAULT_RETRY_BUDGET,
  RETRY_BUDGET_SETTINGS,
  type RetryBudget,
  type RetryBudgetOptions,
  retryBudget,
} from './retry-budget.ts'

/** The default backoff: the delay starts at `initialDelay` and is multiplied by `factor` after each attempt, up to `maxDelay`. */
interface ExponentialOptions {
  readonly type?: 'exponential'
  /** The delay before the second attempt. Defaults to '1s'. */
  readonly initialDelay?: Duration
  /** The longest delay. Defaults to '5m', or to `initialDelay` if that is longer. */
  readonly maxDelay?: Duration
  /** A number from 1 to 100. Defaults to 2. */
  readonly factor?: number
}

/** The delay grows by `initialDelay` after each attempt, up to `maxDelay`. */
interface LinearOptions {
  readonly type: 'linear'
  /** The delay before the second attempt. Defaults to '1s'. */
  readonly initialDelay?: Duration
  /** The longest delay. Defaults to '5m', or to `initialDelay` if that is longer. */
  readonly maxDelay?: Duration
}

/** Every delay is the same. */
interface FixedOptions {
  readonly type: 'fixed'
  /** The delay before each retry. Defaults to '1s'. */
  readonly initialDelay?: Duration
}

/** One delay for each retry. If there are more retries than delays, the last delay is repeated. */
interface ListOptions {
  readonly type: 'list'
  /** 1 to 1,000 entries. */
  readonly delays: readonly Duration[]
}

export type BackoffOptions = (ExponentialOptions | LinearOptions | FixedOptions | ListOptions) & {
  /**
   * Varies each delay at random, so that tasks that failed together do not retry together. A number from 0 to 1, such as 0.2 for
   * ±20%, or `'full'` for any delay from 0 to the backoff's. Defaults to 0.2.
   */
  readonly jitter?: Jitter
}

type Jitter = number | 'full'

/** The `retry` setting of a definition. {@link DEFAULT_RETRY} contains the defaults. */
export interface RetryOptions {
  /** The number of attempts including the first, from 1 (no retries) to 1,000. Defaults to 5. */
  readonly maxAttempts?: number
  readonly backoff?: BackoffOptions
  /**
   * Limits the retries of all tasks of this definition together, in the whole fleet. A retry beyond the budget waits longer, which
   * does not use up an attempt. Use `'none'` for no limit. Defaults to a retry for every five attempts of the last 10 s, and 10
   * retries per second.
   */
  readonly budget?: RetryBudgetOptions | 'none'
  /**
   * How far a call may override this policy for its own task. By default, a call may ask for at most `maxAttempts` attempts, and for
   * delays that are between the shortest and the longest of `backoff`.
   */
  readonly callBounds?: RetryBoundsOptions
}

/** A backoff with defaults filled in and delays in milliseconds. */
export type Backoff =
  | {
      readonly type: 'exponential'
      readonly initialMs: number
      readonly maxMs: number
      readonly factor: number
      readonly jitter: Jitter
    }
  | { readonly type: 'linear'; readonly initialMs: number; readonly maxMs: number; readonly jitter: Jitter }
  | { readonly type: 'fixed'; readonly initialMs: number; readonly jitter: Jitter }
  | { readonly type: 'list'; readonly delaysMs: readonly number[]; readonly jitter: Jitter }

export interface RetryPolicy {
  readonly maxAttempts: number
  readonly backoff: Backoff
  /** Undefined if retries are not limited. */
  readonly budget: RetryBudget | undefined
  readonly callBounds: RetryBounds
}

export const DEFAULT_BACKOFF = { initialMs: 1_000, maxMs: 300_000, factor: 2, jitter: 0.2 } as const

/** 5 attempts with exponential backoff from 1 s to 5 min, ±20%, within {@link DEFAULT_RETRY_BUDGET}. */
export const DEFAULT_RETRY: RetryPolicy = {
  maxAttempts: 5,
  backoff: { type: 'exponential', ...DEFAULT_BACKOFF },
  budget: DEFAULT_RETRY_BUDGET,
  callBounds: {
    maxAttempts: 5,
    minDelayMs: DEFAULT_BACKOFF.initialMs,
    maxDelayMs: DEFAULT_BACKOFF.maxMs,
    totalMs: undefined,
  },
}

export const MAX_ATTEMPTS = 1_000
export const MAX_FACTOR = 100

const RETRY_SETTINGS = [
  'maxAttempts',
  'backoff',
  'budget',
  'callBounds',
] as const satisfies readonly (keyof RetryOptions)[]
/** The settings that each backoff type accepts in addition to `type` and `jitter`. */
export const BACKOFF_SETTINGS = {
  exponential: ['initialDelay', 'maxDelay', 'factor'],
  linear: ['initialDelay', 'maxDelay'],
  fixed: ['initialDelay'],
  list: ['delays'],
} as const satisfies Record<Backoff['type'], readonly string[]>
export const BACKOFF_TYPES = Object.keys(BACKOFF_SETTINGS) as readonly Backoff['type'][]

/**
 * Checks the options and fills in the defaults. @throws BullpenError `invalid_definition` or `invalid_duration`, naming the task
 * and the setting.
 */
export function retryPolicy(options: RetryOptions, task: string): RetryPolicy {
  const fail: Fail = (problem) => {
    throw new BullpenError('invalid_definition', `task ${JSON.stringify(task)}: ${problem}`)
  }
  if (!isRecord(options)) fail(`retry is ${JSON.stringify(options)}; expected an object such as { maxAttempts: 3 }`)
  refuseUnknown(options, RETRY_SETTINGS, 'retry', fail)
  const maxAttempts = options.maxAttempts ?? DEFAULT_RETRY.maxAttempts
  if (!Number.isInteger(maxAttempts) || maxAttempts < 1 || maxAttempts > MAX_ATTEMPTS) {
    fail(`retry.maxAttempts is ${maxAttempts}; expected a whole number from 1 to ${MAX_ATTEMPTS}`)
  }
  const backoff = Object.freeze(backoffOf(options.backoff ?? {}, task, fail))
  const budget = budgetOf(options.budget ?? {}, fail)
  return {
    maxAttempts,
    backoff,
    budget,
    callBounds: boundsOf(options.callBounds ?? {}, { maxAttempts, backoff, task, fail }),
  }
}

interface BoundedPolicy extends Pick<RetryPolicy, 'maxAttempts' | 'backoff'> {
  readonly task: string
  readonly fail: Fail
}

function boundsOf(options: RetryBoundsOptions, { maxAttempts, backoff, task, fail }: BoundedPolicy): RetryBounds {
  if (!isRecord(options)) {
    fail(`retry.callBounds is ${JSON.stringify(options)}; expected an object such as { maxDelay: '1h' }`)
  }
  refuseUnknown(options, RETRY_BOUNDS_SETTINGS, 'retry.callBounds', fail)
  return retryBounds(options, { maxAttempts, ...delaysOf(backoff) }, { task, mostAttempts: MAX_ATTEMPTS, fail })
}

/** Returns the shortest and the longest delay of a backoff, before the jitter. */
function delaysOf(backoff: Backoff): Pick<RetryBounds, 'minDelayMs' | 'maxDelayMs'> {
  switch (backoff.type) {
    case 'exponential':
    case 'linear':
      return { minDelayMs: backoff.initialMs, maxDelayMs: backoff.maxMs }
    case 'fixed':
      return { minDelayMs: backoff.initialMs, maxDelayMs: backoff.initialMs }
    case 'list':
      return { minDelayMs: Math.min(...backoff.delaysMs), maxDelayMs: Math.max(...backoff.delaysMs) }
  }
}

function budgetOf(options: RetryBudgetOptions | 'none', fail: Fail): RetryBudget | undefined {
  if (options !== 'none') {
    if (!isRecord(options)) {
      fail(`retry.budget is ${JSON.stringify(options)}; expected 'none' or an object such as { ratio: 0.1 }`)
    }
    refuseUnknown(options, RETRY_BUDGET_SETTINGS, 'retry.budget', fail)
  }
  return retryBudget(options, fail)
}

function backoffOf(options: BackoffOptions, task: string, fail: Fail): Backoff {
  if (!isRecord(options)) {
    fail(`retry.backoff is ${JSON.stringify(options)}; expected an object such as { initialDelay: '1s' }`)
  }
  const { type = 'exponential', jitter = DEFAULT_BACKOFF.jitter } = options
  if (!BACKOFF_TYPES.includes(type)) {
    fail(`retry.backoff.type is ${JSON.stringify(type)}; expected one of ${BACKOFF_TYPES.join(', ')}`)
  }
  refuseUnknown(options, ['type', 'jitter', ...BACKOFF_SETTINGS[type]], 'retry.backoff', fail)
  if (jitter !== 'full' && (typeof jitter !== 'number' || !(jitter >= 0 && jitter <= 1))) {
    fail(`retry.backoff.jitter is ${jitter}; expected a number from 0 to 1, or 'full'`)
  }
  const delay = (setting: 'initialDelay' | 'maxDelay', byDefault: number): number => {
    const given = (options as ExponentialOptions)[setting]
    return given === undefined ? byDefault : milliseconds(given, `retry.backoff.${setting} of ${task}`)
  }
  const growing = () => {
    const initialMs = delay('initialDelay', DEFAULT_BACKOFF.initialMs)
    const maxMs = delay('maxDelay', Math.max(DEFAULT_BACKOFF.maxMs, initialMs))
    if (maxMs < initialMs) {
      fail(`retry.backoff.maxDelay (${maxMs} ms) is shorter than retry.backoff.initialDelay (${initialMs} ms)`)
    }
    return { initialMs, maxMs, jitter }
  }
  switch (options.type) {
    case 'linear':
      return { type: 'linear', ...growing() }
    case 'fixed':
      return { type: 'fixed', initialMs: delay('initialDelay', DEFAULT_BACKOFF.initialMs), jitter }
    case 'list': {
      const { delays } = options
      if (!Array.isArray(delays) || delays.length < 1 || delays.length > MAX_ATTEMPTS) {
        const given =
          Array.isArray(delays) && delays.length > 0 ? `has ${delays.length}` : `is ${JSON.stringify(delays)}`
        fail(`retry.backoff.delays ${given}; expected 1 to ${MAX_ATTEMPTS} durations`)
      }
      const delaysMs = delays.map((given) => milliseconds(given, `retry.backoff.delays of ${task}`))
      return { type: 'list', delaysMs: Object.freeze(delaysMs), jitter }
    }
    default: {
      const { factor = DEFAULT_BACKOFF.factor } = options
      if (typeof factor !== 'number' || !(factor >= 1 && factor <= MAX_FACTOR)) {
        fail(`retry.backoff.factor is ${factor}; expected a number from 1 to ${MAX_FACTOR}`)
      }
      return { type: 'exponential', ...growing(), factor }
    }
  }
}

function refuseUnknown(options: object, known: readonly string[], path: string, fail: Fail): void {
  const unknown = Object.keys(options).find((setting) => !known.includes(setting))
  if (unknown === undefined) return
  const near = nearest(unknown, known)
  const accepted = near === undefined ? `expected ${known.join(', ')}` : `did you mean ${path}.${near}?`
  fail(`${path}.${unknown} is not a setting; ${accepted}`)
}
