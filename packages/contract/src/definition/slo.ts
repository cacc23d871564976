// Parses a service-level objective, which says how soon most tasks should start.
import { checkOptions, type Fail } from './options.ts'
import { type Duration, milliseconds } from './units/duration.ts'

export interface SloOptions {
  /** How long after a task is ready its first attempt should start, such as `'30s'`. The time of a delay does not count. */
  readonly startWithin: Duration
  /** The share of the tasks that should start in time: from 0.5 to less than 1. Defaults to 0.99. */
  readonly objective?: number
}

/** A service-level objective: this share of the tasks should start within this time. */
export interface Slo {
  readonly startWithinMs: number
  readonly objective: number
}

const DEFAULT_OBJECTIVE = 0.99

/** If more tasks may be late than in time, an alert on the late ones cannot tell a fault from normal operation. */
const MIN_OBJECTIVE = 0.5

const SETTINGS: readonly string[] = ['startWithin', 'objective'] satisfies readonly (keyof SloOptions)[]

/**
 * Returns the objective with its default filled in. `owner` names the task or the queue, and `fail` throws an error that names it.
 *
 * @throws BullpenError `invalid_duration`
 */
export function parseSlo(options: SloOptions, owner: string, fail: Fail): Slo {
  const example = "{ startWithin: '30s', objective: 0.99 }"
  checkOptions('slo', options, { settings: SETTINGS, example, expected: SETTINGS.join(' or ') }, fail)
  const { startWithin, objective = DEFAULT_OBJECTIVE } = options
  if (startWithin === undefined) fail("slo.startWithin is missing; expected a duration such as '30s'")
  const startWithinMs = milliseconds(startWithin, `slo.startWithin of ${owner}`)
  if (!(typeof objective === 'number' && objective >= MIN_OBJECTIVE && objective < 1)) {
    fail(`slo.objective is ${JSON.stringify(objective)}; expected a share from 0.5 to less than 1, such as 0.99`)
  }
  return Object.freeze({ startWithinMs, objective })
}
