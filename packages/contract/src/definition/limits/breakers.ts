// Parses the circuit breakers of a queue, and which of them a task depends on.
import { suggestion } from '../nearest.ts'
import { checkOptions, checkWhole, type Fail, isRecord } from '../options.ts'
import { type Duration, milliseconds, millisecondsWithin } from '../units/duration.ts'
import { SHORT_NAME, SHORT_NAME_RULE } from './permits.ts'

/**
 * When a circuit breaker opens and closes. A call is an attempt of a task that depends on the breaker's service. An attempt
 * that does not show whether the service works, such as a cancelled one, is not counted. The calls of all workers count
 * together.
 */
export interface BreakerOptions {
  /** The share of failed calls at which the breaker opens: more than 0 and at most 1. Defaults to 0.5. */
  readonly failureRate?: number
  /** A call that takes at least this long counts as slow, for example `'10s'`. By default, no call is slow. */
  readonly slowCallDuration?: Duration
  /** The share of slow calls at which the breaker opens: more than 0 and at most 1. Defaults to 0.5. Requires `slowCallDuration`. */
  readonly slowCallRate?: number
  /** How many calls the window must contain before the breaker may open: a whole number from 1 to 1,000,000. Defaults to 20. */
  readonly minimumCalls?: number
  /** How long a call is counted, from '1s' to '1h'. The window moves in steps of a tenth of this time. Defaults to '1m'. */
  readonly window?: Duration
  /**
   * How long the breaker stays open before tasks probe the service, from '1s' to '1h'. Each time that a probe fails, this time is doubled,
   * up to `maxOpenFor`. Up to a tenth is added at random. Defaults to '30s'.
   */
  readonly openFor?: Duration
  /**
   * The longest time for which the breaker stays open before tasks probe the service, from `openFor` to '1d'. Defaults to '5m', or to
   * `openFor` if that is longer.
   */
  readonly maxOpenFor?: Duration
  /**
   * How many tasks probe the service in each period, which is as long as the breaker was open, and how many probes must succeed before the
   * breaker closes: a whole number from 1 to 100. Defaults to 1.
   */
  readonly probes?: number
  /**
   * Which failures count, for example `['http_503', 'econnrefused', 'run_timeout']`: the codes of declared failures, and the
   * reasons of panics and timeouts. Set it if a task depends on several services, so that a failure opens only the breaker of
   * the service that has failed. Other declared failures then count as calls that succeeded, because the service has answered.
   * By default, all retryable failures count, and also `unexpected_error`, `run_timeout` and `heartbeat_timeout`.
   */
  readonly failureCodes?: readonly string[]
}

/** The settings of a circuit breaker with defaults filled in. */
export interface BreakerSettings {
  readonly failureRate: number
  /** Undefined if no call is slow. */
  readonly slowCallMs: number | undefined
  readonly slowCallRate: number
  readonly minimumCalls: number
  readonly windowMs: number
  readonly openMs: number
  readonly maxOpenMs: number
  readonly probes: number
  /** Undefined if the default applies. */
  readonly failureCodes: readonly string[] | undefined
}

/** The circuit breakers of a queue, by the names of the services. */
export type BreakersOf = Readonly<Record<string, BreakerSettings>>

const MAX_BREAKERS = 32
const MAX_DEPENDENCIES = 8
const MAX_OPEN_MS = milliseconds('5m')

const SETTINGS: readonly string[] = [
  'failureRate',
  'slowCallDuration',
  'slowCallRate',
  'minimumCalls',
  'window',
  'openFor',
  'maxOpenFor',
  'probes',
  'failureCodes',
] satisfies readonly (keyof BreakerOptions)[]

/**
 * Returns the breakers of a queue. `fail` throws an error that names the queue.
 *
 * @throws BullpenError `invalid_duration`
 */
export function parseBreakers(
  given: Readonly<Record<string, BreakerOptions>>,
  queue: string,
  fail: Fail,
): BreakersOf | undefined {
  if (!isRecord(given)) {
    fail(`breakers is ${JSON.stringify(given)}; expected an object such as { smtp: { failureRate: 0.5 } }`)
  }
  const names = Object.keys(given)
  if (names.length > MAX_BREAKERS) fail(`breakers has ${names.length} services; expected at most ${MAX_BREAKERS}`)
  if (names.length === 0) return undefined
  const misnamed = names.find((name) => !SHORT_NAME.test(name))
  if (misnamed !== undefined) {
    fail(`breakers has a service named ${JSON.stringify(misnamed)}; ${SHORT_NAME_RULE}`)
  }
  const breakers = names.map((name) => [name, parseBreaker(given[name] as BreakerOptions, name, queue, fail)] as const)
  return Object.freeze(Object.fromEntries(breakers))
}

function parseBreaker(options: BreakerOptions, service: string, queue: string, fail: Fail): BreakerSettings {
  const name = `breakers.${service}`
  checkOptions(name, options, { settings: SETTINGS, example: '{ failureRate: 0.5 }, or {} for the defaults' }, fail)
  const {
    failureRate = 0.5,
    slowCallRate = 0.5,
    minimumCalls = 20,
    probes = 1,
    slowCallDuration,
    failureCodes,
  } = options
  for (const [setting, rate] of Object.entries({ failureRate, slowCallRate })) {
    if (!(typeof rate === 'number' && rate > 0 && rate <= 1)) {
      fail(`${name}.${setting} is ${JSON.stringify(rate)}; expected a share of more than 0 and at most 1, such as 0.5`)
    }
  }
  if (options.slowCallRate !== undefined && slowCallDuration === undefined) {
    fail(`${name}.slowCallRate requires ${name}.slowCallDuration, which says what a slow call is`)
  }
  checkWhole(`${name}.minimumCalls`, minimumCalls, { min: 1, max: 1_000_000 }, fail)
  checkWhole(`${name}.probes`, probes, { min: 1, max: 100 }, fail)
  if (failureCodes !== undefined && !isListOfNames(failureCodes)) {
    fail(`${name}.failureCodes is ${JSON.stringify(failureCodes)}; expected at least one code, such as ['http_503']`)
  }
  const of = (setting: string) => `${name}.${setting} of queue ${queue}`
  const openMs = millisecondsWithin(options.openFor ?? '30s', of('openFor'), { min: '1s', max: '1h' })
  const maxOpenMs =
    options.maxOpenFor === undefined
      ? Math.max(openMs, MAX_OPEN_MS)
      : millisecondsWithin(options.maxOpenFor, of('maxOpenFor'), { min: '1s', max: '1d' })
  if (maxOpenMs < openMs) {
    fail(
      `${name}.maxOpenFor is '${options.maxOpenFor}'; expected at least openFor, which is '${options.openFor ?? '30s'}'`,
    )
  }
  return Object.freeze({
    failureRate,
    slowCallMs: slowCallDuration === undefined ? undefined : milliseconds(slowCallDuration, of('slowCallDuration')),
    slowCallRate,
    minimumCalls,
    windowMs: millisecondsWithin(options.window ?? '1m', of('window'), { min: '1s', max: '1h' }),
    openMs,
    maxOpenMs,
    probes,
    failureCodes: failureCodes && Object.freeze([...failureCodes]),
  })
}

/** The settings of a breaker whose definition sets none. */
export const DEFAULT_BREAKER: BreakerSettings = parseBreaker({}, 'any', 'any', (problem) => {
  throw new Error(problem)
})

/** Returns the services that a task depends on, sorted. `fail` throws an error that names the task. */
export function parseDependencies(
  given: readonly string[],
  { name: queue, breakers = {} }: { readonly name: string; readonly breakers: BreakersOf | undefined },
  fail: Fail,
): readonly string[] {
  if (!isListOfNames(given))
    fail(`dependsOn is ${JSON.stringify(given)}; expected the names of services, such as ['smtp']`)
  const names = [...new Set(given)].sort()
  if (names.length > MAX_DEPENDENCIES)
    fail(`dependsOn has ${names.length} services; expected at most ${MAX_DEPENDENCIES}`)
  const known = Object.keys(breakers)
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) {
    const expected =
      known.length === 0
        ? `has no breakers; add breakers: { ${JSON.stringify(unknown)}: {} } to its defineQueue`
        : `has no breaker with this name; expected one of ${known.join(', ')}${suggestion(unknown, known)}`
    fail(`dependsOn names ${JSON.stringify(unknown)}, but queue '${queue}' ${expected}`)
  }
  return Object.freeze(names)
}

function isListOfNames(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length > 0 && value.every((name) => typeof name === 'string' && name !== '')
}
