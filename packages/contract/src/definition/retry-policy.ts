// How often a task is tried again, and how long it waits between.

import { BullpenError } from '../errors/errors.ts'
import { type Duration, milliseconds } from './duration.ts'
import { nearest } from './nearest.ts'

/** What a definition says of retries. What is left out is taken from {@link DEFAULT_RETRY}. */
export interface RetryOptions {
  /** Attempts in all, the first included; 1 never retries. 1 to 1,000; default 5. */
  readonly attempts?: number
  /** The wait before the second attempt; it doubles with each further one. Default '1s'. */
  readonly base?: Duration
  /** The longest wait. Default '5m'. */
  readonly max?: Duration
  /** The part of the wait that is random, up and down: 0.2 is plus or minus 20 %. 0 to 1; default 0.2. */
  readonly jitter?: number
}

export interface RetryPolicy {
  readonly attempts: number
  readonly baseMs: number
  readonly maxMs: number
  readonly jitter: number
}

export const DEFAULT_RETRY: RetryPolicy = { attempts: 5, baseMs: 1_000, maxMs: 300_000, jitter: 0.2 }

const SETTINGS: readonly string[] = ['attempts', 'base', 'max', 'jitter'] satisfies readonly (keyof RetryOptions)[]

/** @throws BullpenError `invalid_definition` or `invalid_duration` naming the task and the setting. */
export function retryPolicy(options: RetryOptions, task: string): RetryPolicy {
  const wrong = (message: string): never => {
    throw new BullpenError('invalid_definition', `task ${task}: ${message}`)
  }
  // Types refuse these; plain JavaScript comes by here.
  if (typeof options !== 'object' || options === null)
    wrong(`retry is ${JSON.stringify(options)}; it is an object such as { attempts: 3 }`)
  const unknown = Object.keys(options).find((setting) => !SETTINGS.includes(setting))
  if (unknown !== undefined)
    wrong(
      `retry.${unknown} is not a setting; did you mean retry.${nearest(unknown, SETTINGS) ?? SETTINGS.join(' or retry.')}?`,
    )
  const policy = {
    attempts: options.attempts ?? DEFAULT_RETRY.attempts,
    baseMs: options.base === undefined ? DEFAULT_RETRY.baseMs : milliseconds(options.base, `retry.base of ${task}`),
    maxMs: options.max === undefined ? DEFAULT_RETRY.maxMs : milliseconds(options.max, `retry.max of ${task}`),
    jitter: options.jitter ?? DEFAULT_RETRY.jitter,
  }
  if (!Number.isInteger(policy.attempts) || policy.attempts < 1 || policy.attempts > 1_000) {
    wrong(`retry.attempts is ${policy.attempts}; it is a whole number from 1 to 1000`)
  }
  if (typeof policy.jitter !== 'number' || !(policy.jitter >= 0 && policy.jitter <= 1))
    wrong(`retry.jitter is ${policy.jitter}; it is from 0 to 1`)
  if (policy.maxMs < policy.baseMs)
    wrong(`retry.max (${policy.maxMs} ms) is shorter than retry.base (${policy.baseMs} ms)`)
  return policy
}
