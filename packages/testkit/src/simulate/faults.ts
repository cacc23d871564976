// Compares interrupted runs with an uninterrupted one.
import type { TaskStatus } from '@bullpen/contract'
import type { EffectCount } from './effect-ledger.ts'
import { type InterruptionKind, type InterruptionPoint, type Plan, placeText, pointText } from './interruption.ts'

export interface SimulatedInterruption {
  readonly kind: InterruptionKind
  /** The fencing token of the attempt that was interrupted. */
  readonly attempt: number
  /** The call at which the attempt was interrupted, such as `mailer.send`. Undefined if its handler had returned. */
  readonly call: string | undefined
  readonly phase: InterruptionPoint['phase']
  /** Where the call is in the source, as `file:line:column`. */
  readonly location: string | undefined
  /** A phrase that contains the fields above, such as `before mailer.send (src/invoice.ts:12:30)`. */
  readonly place: string
}

/** One run in which a fault was found. */
export interface FaultyRun {
  readonly interruptions: readonly SimulatedInterruption[]
  /** How often the effect happened in this run. */
  readonly times: number
  /** How the task ended, in one line. */
  readonly summary: string
}

export interface SimulationFault {
  /**
   * - `repeated`: the effect happened more often than in an uninterrupted run.
   * - `missing`: the task completed, but the effect happened less often than in an uninterrupted run.
   * - `unexpected`: the effect does not happen in an uninterrupted run.
   * - `not_completed`: the task did not complete after the interruption.
   */
  readonly kind: 'repeated' | 'missing' | 'unexpected' | 'not_completed'
  /** The effect as text, such as `mailer.send("ann@example.com")`. Undefined if the task did not complete. */
  readonly effect: string | undefined
  /** How often the effect happens in an uninterrupted run. */
  readonly expected: number
  /** The runs in which the fault was found, which differ in their interruptions. */
  readonly runs: readonly FaultyRun[]
}

/** What a run has done. */
export interface RunOutcome {
  readonly plan: Plan
  readonly status: TaskStatus
  readonly summary: string
  readonly effects: ReadonlyMap<string, EffectCount>
}

/**
 * Returns the faults of all runs. Runs that show the same fault in the same effect are listed together. A run with two interruptions
 * is left out if one of them causes the fault alone.
 */
export function faultsOf(expected: RunOutcome['effects'], runs: readonly RunOutcome[]): readonly SimulationFault[] {
  const found = new Map<string, SimulationFault>()
  const causes = new Set<string>()
  for (const run of runs.toSorted((a, b) => a.plan.length - b.plan.length)) {
    for (const fault of faultsOfRun(expected, run)) {
      const id = `${fault.kind} ${fault.effect}`
      const causesOfRun = run.plan.map(({ kind, point }) => [id, kind, point.phase, point.call].join(' '))
      if (run.plan.length > 1 && causesOfRun.some((cause) => causes.has(cause))) continue
      if (run.plan.length === 1) for (const cause of causesOfRun) causes.add(cause)
      const earlier = found.get(id)
      found.set(id, earlier === undefined ? fault : { ...earlier, runs: [...earlier.runs, ...fault.runs] })
    }
  }
  return [...found.values()]
}

function faultsOfRun(
  expectedEffects: RunOutcome['effects'],
  { plan, status, summary, effects }: RunOutcome,
): readonly SimulationFault[] {
  const interruptions = plan.map(interruptionOf)
  const completed = status === 'completed'
  const names = new Set([...expectedEffects.keys(), ...effects.keys()])
  const faults = [...names].flatMap((effect): readonly SimulationFault[] => {
    const expected = expectedEffects.get(effect)?.total ?? 0
    const times = countedTimes(effects.get(effect), expected)
    const kind = kindOf(times, expected, completed)
    return kind === undefined ? [] : [{ kind, effect, expected, runs: [{ interruptions, times, summary }] }]
  })
  if (completed) return faults
  const runs = [{ interruptions, times: 0, summary }]
  return [...faults, { kind: 'not_completed', effect: undefined, expected: 0, runs }]
}

/** Returns how often an effect counts as having happened. Accepted repetitions do not count. */
function countedTimes({ total, unrecorded }: EffectCount = { total: 0, unrecorded: 0 }, expected: number): number {
  return Math.max(total - unrecorded, Math.min(total, expected))
}

function kindOf(times: number, expected: number, completed: boolean): SimulationFault['kind'] | undefined {
  if (times > expected) return expected === 0 ? 'unexpected' : 'repeated'
  // A task that did not complete is a fault of its own.
  return times < expected && completed ? 'missing' : undefined
}

function interruptionOf(planned: Plan[number]): SimulatedInterruption {
  const { kind, point } = planned
  return {
    kind,
    attempt: point.attempt,
    call: point.call === '' ? undefined : point.call,
    phase: point.phase,
    location: point.site?.(),
    place: placeText(point),
  }
}

/** Returns the first difference between two uninterrupted runs as a sentence, or undefined if they do not differ. */
export function differenceBetween(
  first: Pick<RunOutcome, 'effects'> & { readonly points: readonly InterruptionPoint[] },
  second: typeof first,
): string | undefined {
  const effect = differingKey(first.effects, second.effects, ({ total }) => total)
  if (effect !== undefined) {
    const times = (effects: RunOutcome['effects']): string => timesText(effects.get(effect)?.total ?? 0)
    return `${effect} happened ${times(first.effects)} in the first run and ${times(second.effects)} in the second`
  }
  const byId = (points: readonly InterruptionPoint[]) => new Map(points.map((point) => [point.id, point]))
  const [points, others] = [byId(first.points), byId(second.points)]
  const id = differingKey(points, others, () => true)
  const point = id === undefined ? undefined : (points.get(id) ?? others.get(id))
  return point && `only one of two runs reached the point ${pointText(point)}`
}

function differingKey<T>(a: ReadonlyMap<string, T>, b: ReadonlyMap<string, T>, of: (value: T) => unknown) {
  const value = (map: ReadonlyMap<string, T>, key: string): unknown => {
    const found = map.get(key)
    return found === undefined ? undefined : of(found)
  }
  return [...a.keys(), ...b.keys()].find((key) => value(a, key) !== value(b, key))
}

export function timesText(times: number): string {
  if (times === 0) return 'never'
  return times === 1 ? 'once' : `${times} times`
}
