// Decides how a task is retried whose caller overrides the definition's retry policy, and refuses what is outside of the definition's
// bounds.
import {
  type Backoff,
  type BullpenError,
  type CallBackoff,
  type Duration,
  formatDuration,
  milliseconds,
  type TaskDefinition,
} from '@bullpen/contract'
import { BACKOFF_SETTINGS, DEFAULT_BACKOFF, limitMs } from '@bullpen/contract/internal'
import { invalidRequest } from './invalid-request.ts'

/** Returns the task's number of attempts. `wanted` is the caller's, if any. */
export function maxAttemptsOf({ name, retry }: TaskDefinition, wanted: number | undefined): number {
  if (wanted === undefined) return retry.maxAttempts
  const most = retry.callBounds.maxAttempts
  if (wanted <= most) return wanted
  throw invalidRequest(
    '/retry/maxAttempts',
    `expected at most ${most} (retry.callBounds.maxAttempts of ${name}), got ${wanted}`,
  )
}

/** Refuses a caller's total timeout that exceeds its bound. */
export function checkTotal({ name, retry }: TaskDefinition, wanted: string | undefined): void {
  const most = retry.callBounds.totalMs
  if (wanted === undefined || most === undefined) return
  const ms = limitMs(wanted, 'totalTimeout')
  if (typeof ms === 'number' && ms <= most) return
  throw invalidRequest(
    '/totalTimeout',
    `expected at most '${formatDuration(most)}' (retry.callBounds.totalTimeout of ${name}), got '${wanted}'`,
  )
}

const AT = '/retry/backoff'

/**
 * Returns the task's backoff. A setting that the caller leaves out has the value of the definition's backoff. If that backoff is of
 * another type and lacks the setting, the setting has its usual default, or the bound that is nearest to the default.
 */
export function callBackoff({ name, retry }: TaskDefinition, call: CallBackoff): Backoff {
  const own = retry.backoff
  const { minDelayMs, maxDelayMs } = retry.callBounds
  const { type = own.type, jitter = own.jitter } = call
  const accepted: readonly string[] = ['type', 'jitter', ...BACKOFF_SETTINGS[type]]
  const extra = Object.keys(call).find((setting) => !accepted.includes(setting))
  if (extra !== undefined) {
    throw invalidRequest(
      `${AT}/${extra}`,
      `the backoff '${type}' does not have this setting; it has ${BACKOFF_SETTINGS[type].join(', ')}`,
    )
  }

  const bounded = (given: Duration, place: string): number => {
    const ms = milliseconds(given, `retry.backoff.${place.replace('/', '.')}`)
    const outside = (side: string, bound: number, setting: string): BullpenError =>
      invalidRequest(
        `${AT}/${place}`,
        `expected ${side} '${formatDuration(bound)}' (retry.callBounds.${setting} of ${name}), got '${given}'`,
      )
    if (ms < minDelayMs) throw outside('at least', minDelayMs, 'minDelay')
    if (ms > maxDelayMs) throw outside('at most', maxDelayMs, 'maxDelay')
    return ms
  }
  const usual = (ms: number): number => Math.min(Math.max(ms, minDelayMs), maxDelayMs)
  const initial = (): number => {
    if (call.initialDelay !== undefined) return bounded(call.initialDelay, 'initialDelay')
    return 'initialMs' in own ? own.initialMs : usual(DEFAULT_BACKOFF.initialMs)
  }
  const growing = () => {
    const initialMs = initial()
    if (call.maxDelay === undefined) {
      return {
        initialMs,
        maxMs: Math.max(initialMs, 'maxMs' in own ? own.maxMs : usual(DEFAULT_BACKOFF.maxMs)),
        jitter,
      }
    }
    const maxMs = bounded(call.maxDelay, 'maxDelay')
    if (maxMs >= initialMs) return { initialMs, maxMs, jitter }
    throw invalidRequest(
      `${AT}/maxDelay`,
      `expected at least the initial delay, '${formatDuration(initialMs)}', got '${call.maxDelay}'`,
    )
  }

  switch (type) {
    case 'exponential':
      return { type, ...growing(), factor: call.factor ?? ('factor' in own ? own.factor : DEFAULT_BACKOFF.factor) }
    case 'linear':
      return { type, ...growing() }
    case 'fixed':
      return { type, initialMs: initial(), jitter }
    case 'list': {
      const { delays } = call
      if (delays !== undefined) return { type, delaysMs: delays.map((each, i) => bounded(each, `delays/${i}`)), jitter }
      if (own.type === 'list') return { ...own, jitter }
      throw invalidRequest(`${AT}/delays`, "missing; the backoff 'list' needs 1 to 100 durations")
    }
  }
}
