/**
 * Tests whether a handler is idempotent: that its effects happen as often as they should, although its task may run more than once.
 * The simulation first runs the task without an interruption. It then runs the task again for every point at which an attempt can be
 * interrupted and for every kind of interruption, each time until the task has ended, and compares the effects. The runs are
 * deterministic, and the order of the interruptions is fixed. Databases are tested in the same way, by injecting a crash at
 * every crash point.
 */
import type { Handler, InputOf, Resources, TaskDefinition } from '@bullpen/contract'
import { DEFAULT_TIMEOUTS } from '@bullpen/engine/internal'
import { type FakeClock, fakeClock } from '../fake-clock.ts'
import type { RunTaskOptions } from '../run/run-options.ts'
import { runOn } from '../run/run-task.ts'
import type { TaskRun } from '../run/task-run.ts'
import type { EffectCount } from './effect-ledger.ts'
import { differenceBetween, faultsOf, type RunOutcome } from './faults.ts'
import {
  INTERRUPTION_KINDS,
  type InterruptionKind,
  type InterruptionPoint,
  interruptionsAt,
  kindsText,
  type Plan,
  placeText,
  pointText,
  repeatableKinds,
} from './interruption.ts'
import { type Simulation, simulation } from './report.ts'
import { SimulatedRun } from './simulated-run.ts'
import { SimulationError } from './simulation-error.ts'

/** What a simulation passes to the function that creates its resources. */
export interface SimulatedWorld {
  /** The clock of the run, for handlers that take their clock from a resource. */
  readonly clock: FakeClock
}

export interface SimulateOptions<R extends Resources = object>
  extends Pick<
    RunTaskOptions<R>,
    'call' | 'correlationId' | 'traceContext' | 'group' | 'followUpOf' | 'middleware' | 'timeouts' | 'catalogue'
  > {
  /**
   * Creates the worker's resources, and the fake systems behind them, such as a mail server or a database. It is called once for
   * each run, and the attempts of a run share the resources. Mark the functions that have an effect with `effect` or `effects`.
   */
  readonly resources?: (world: SimulatedWorld) => R | Promise<R>
  /** How to interrupt attempts. Defaults to all kinds. */
  readonly kinds?: readonly InterruptionKind[]
  /**
   * Whether to add runs that are interrupted twice: at each point, and at every later point of the run. The number of runs grows
   * with the square of the number of points. Defaults to false.
   */
  readonly pairs?: boolean
  /** The maximum number of runs. Defaults to 2,000. */
  readonly maxRuns?: number
  /** States that the handler has no effects. By default, a handler without effects is an error. */
  readonly withoutEffects?: boolean
  /** Pass `'real'` if the handler waits for a timer, a file or a socket. Waits between attempts are skipped all the same. */
  readonly clock?: 'real'
}

/** Resources are required if the handler needs any. */
type Given<R extends Resources> = object extends R
  ? [options?: SimulateOptions<R>]
  : [options: SimulateOptions<R> & { readonly resources: (world: SimulatedWorld) => R | Promise<R> }]

interface SimulatedOutcome extends RunOutcome {
  readonly run: TaskRun
  /** Whether the handler has had an effect or added a follow-up. Those of the definition follow whatever the handler does. */
  readonly hasEffects: boolean
  readonly points: readonly InterruptionPoint[]
  /** The first planned point that the run did not reach. */
  readonly missed: InterruptionPoint | undefined
}

const DEFAULT_MAX_RUNS = 2_000

/**
 * Runs a handler repeatedly and interrupts it at every call that it awaits on its context or its resources, and at every boundary of
 * `ctx.once`: by a crash, a drain, a timeout and a lost lock. After each interruption, the task runs again, with the steps and the
 * progress that were stored, until it ends. The result lists every effect that happened more or less often than without an
 * interruption, and the completed task's follow-ups in the same way.
 *
 * A handler that makes n calls is run at most 8 n + 4 times, plus 4 times for each call of `ctx.once`.
 *
 * @throws SimulationError `no_interruption`, `never_completes`, `no_effects`, `non_deterministic` or `too_many_runs` if the handler
 * cannot be simulated.
 * @throws BullpenError `invalid_input` or `invalid_request` if the API would reject the input or the options.
 */
export async function simulate<D extends TaskDefinition, R extends Resources = object>(
  handler: Handler<D, R>,
  input: InputOf<D>,
  ...[given]: Given<R>
): Promise<Simulation> {
  const options: SimulateOptions<R> = given ?? {}
  const { task } = handler
  const wanted = options.kinds ?? INTERRUPTION_KINDS
  const kinds = repeatableKinds(task, { ...DEFAULT_TIMEOUTS, ...options.timeouts }).filter((kind) =>
    wanted.includes(kind),
  )
  assertInterrupted(task, wanted, kinds)
  const awaitedCalls = new Set<string>()
  const run = (plan: Plan): Promise<SimulatedOutcome> => runPlan(handler, input, options, plan, awaitedCalls)
  const assertFew = (runs: number, what: string): void => assertAtMost(options.maxRuns ?? DEFAULT_MAX_RUNS, runs, what)

  const first = await run([])
  assertCompleted(first)
  assertSame(first, await run([]))
  if (options.withoutEffects !== true) assertEffects(first, task)

  const singles = first.points.flatMap((point) => interruptionsAt(point, kinds)).map((planned): Plan => [planned])
  assertFew(2 + singles.length, `${first.points.length} interruption points`)
  const interrupted = await runAll(singles, run)

  const pairs = options.pairs
    ? interrupted.flatMap(({ plan, points }) =>
        points.flatMap((point) => interruptionsAt(point, kinds)).map((planned): Plan => [...plan, planned]),
      )
    : []
  assertFew(2 + singles.length + pairs.length, `${singles.length} single interruptions and ${pairs.length} pairs`)
  const interruptedTwice = await runAll(pairs, run)

  const outcomes = [...interrupted, ...interruptedTwice]
  return simulation({
    task: task.name,
    runs: 2 + outcomes.length,
    points: first.points.length,
    effects: Array.from(first.effects, ([effect, { total }]) => ({ effect, times: total })),
    faults: faultsOf(first.effects, outcomes),
  })
}

/** Carries out one plan in a world of its own. */
async function runPlan<D extends TaskDefinition, R extends Resources>(
  { task, module, handle }: Handler<D, R>,
  input: InputOf<D>,
  options: SimulateOptions<R>,
  plan: Plan,
  awaitedCalls: Set<string>,
): Promise<SimulatedOutcome> {
  const { resources, clock: requested, middleware = [], ...others } = options
  const { kinds: _kinds, pairs: _pairs, maxRuns: _maxRuns, withoutEffects: _withoutEffects, ...passedOn } = others
  const clock = fakeClock()
  const real = requested === 'real'
  const simulated = new SimulatedRun<R>(plan, awaitedCalls)
  // The interruptions must not be the reason why the task runs out of time or attempts.
  const definition: D = { ...task, totalMs: 'none', queueMs: 'none' }
  const world = await resources?.({ clock })
  const settings: RunTaskOptions<R> = {
    ...passedOn,
    ...(world !== undefined && { resources: world }),
    middleware: [simulated.middleware, ...middleware],
    maxAttempts: task.retry.maxAttempts + plan.length,
    endAt: '30d',
    slots: 2,
  }
  try {
    const run = await runOn(
      { clock, real, hint: !real },
      definition,
      { task: definition, module, handle },
      input,
      settings,
      simulated,
    )
    const { status, summary } = run
    const { points, missed, ledger, addsFollowUps } = simulated
    const own = ledger.counts()
    const effects = new Map([...own, ...followUpsOf(run)])
    return { plan, run, status, summary, points, missed, effects, hasEffects: own.size > 0 || addsFollowUps }
  } catch (cause) {
    if (!(cause instanceof Error) || 'code' in cause) throw cause
    const causes = plan.map(({ kind, point }) => `${placeText(point)} by ${kindsText([kind])}`)
    const when = causes.length === 0 ? '' : ` when it is interrupted ${causes.join(', and then ')}`
    throw new SimulationError('never_completes', `${task.name} does not end${when}: ${cause.message}`, { cause })
  }
}

/** Counts the follow-ups of a completed task by their definition. */
function followUpsOf({ status, followUps }: TaskRun): ReadonlyMap<string, EffectCount> {
  const counts = new Map<string, EffectCount>()
  for (const { task } of status === 'completed' ? followUps : []) {
    const effect = `follow-up ${JSON.stringify(task)}`
    counts.set(effect, { total: (counts.get(effect)?.total ?? 0) + 1, unrecorded: 0 })
  }
  return counts
}

async function runAll(
  plans: readonly Plan[],
  run: (plan: Plan) => Promise<SimulatedOutcome>,
): Promise<readonly SimulatedOutcome[]> {
  const outcomes: SimulatedOutcome[] = []
  for (const plan of plans) {
    const outcome = await run(plan)
    if (outcome.missed !== undefined) {
      throw nonDeterministic(`a run that was to be interrupted ${pointText(outcome.missed)} did not reach this point`)
    }
    outcomes.push(outcome)
  }
  return outcomes
}

/** Without an interruption, every handler would look idempotent. */
function assertInterrupted(
  { name }: TaskDefinition,
  wanted: readonly InterruptionKind[],
  kinds: readonly InterruptionKind[],
): void {
  if (kinds.length > 0) return
  const list = (all: readonly string[]): string => all.map((kind) => `'${kind}'`).join(', ')
  throw new SimulationError(
    'no_interruption',
    `\`kinds\` is [${list(wanted)}], and a task '${name}' runs again after none of these; expected some of ${list(INTERRUPTION_KINDS)}`,
  )
}

function assertCompleted({ status, run, points }: SimulatedOutcome): void {
  if (status === 'completed') return
  const last = points.at(-1)
  const where =
    last === undefined || last.phase === 'returned' ? '' : `; the last interruption point was ${pointText(last)}`
  const cause = run.errors.at(-1)
  const message = `the task does not complete even without an interruption: ${run.summary}${where}`
  throw new SimulationError('never_completes', message, { cause })
}

function assertSame(first: SimulatedOutcome, second: SimulatedOutcome): void {
  const difference = differenceBetween(first, second)
  if (difference !== undefined) throw nonDeterministic(difference)
}

function nonDeterministic(difference: string): SimulationError {
  return new SimulationError(
    'non_deterministic',
    `two runs with the same input differ: ${difference}; create all state in the function \`resources\`, give an effect whose arguments contain a time or a random value an \`identity\`, and pass \`clock: 'real'\` if the handler waits for a timer, a file or a socket`,
  )
}

function assertEffects({ hasEffects, points }: SimulatedOutcome, { name }: TaskDefinition): void {
  if (hasEffects) return
  const calls = new Set(
    points
      .filter(({ phase }) => phase === 'before')
      .map(({ attempt, call, occurrence }) => `${attempt} ${call} ${occurrence}`),
  ).size
  const found =
    calls === 0
      ? 'awaits nothing on its context or its resources'
      : `makes ${calls === 1 ? '1 call, which is not' : `${calls} calls, none of which is`} marked as an effect`
  throw new SimulationError(
    'no_effects',
    `the handler of ${name} ${found}; mark the functions of its resources that have an effect with effect(), or pass \`withoutEffects: true\` if it has none`,
  )
}

function assertAtMost(maxRuns: number, runs: number, what: string): void {
  if (runs <= maxRuns) return
  throw new SimulationError(
    'too_many_runs',
    `the simulation would take ${runs} runs for ${what}; the limit is ${maxRuns}; use an input for which the handler makes fewer calls, or set \`kinds\` or \`maxRuns\``,
  )
}
