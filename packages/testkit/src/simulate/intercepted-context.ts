// Replaces the members of a handler's context by ones that the simulation can interrupt.
import type { Enqueued, StepResult, TaskContext } from '@bullpen/contract'
import { callSite } from './call-site.ts'
import { argumentsText, signalIn } from './call-text.ts'
import { attemptScope, type EffectCall, type RunningStep } from './effect.ts'
import { type EffectLedger, enterCall } from './effect-ledger.ts'
import type { SimulatedAttempt } from './simulated-attempt.ts'
import type { AttemptHost } from './simulated-run.ts'
import { watchResources } from './watched-resources.ts'

/** The names of the context's functions that a handler awaits. */
type AwaitedName = {
  [Name in keyof TaskContext]: TaskContext[Name] extends (...args: never[]) => infer Result
    ? [Result] extends [never]
      ? never
      : Result extends Promise<unknown>
        ? Name
        : never
    : never
}[keyof TaskContext]

type AwaitedFunctions = { [Name in AwaitedName]: TaskContext[Name] }

/**
 * Replaces the resources of an attempt's context, and every function of the context that the handler awaits. Returns the function that
 * intercepts the calls of resources.
 */
export function interceptContext(
  context: TaskContext,
  attempt: SimulatedAttempt,
  { ledger, noteFollowUp }: Pick<AttemptHost, 'ledger' | 'noteFollowUp'>,
): (call: EffectCall) => unknown {
  const intercept = ({ name, fn, receiver, args, effect, callee }: EffectCall): unknown =>
    attempt.call({
      name,
      site: callSite(callee),
      signal: signalIn(args),
      isEffect: effect !== undefined,
      make: () => Reflect.apply(fn, receiver, args),
      onSuccess() {
        if (effect !== undefined) enterCall(ledger, name, args, effect, attemptScope.getStore()?.step)
      },
    })
  const replacements = {
    resources: watchResources(context.resources, intercept),
    progress: interceptedProgress(context, attempt),
    enqueue: interceptedEnqueue(context, attempt, ledger),
    once: interceptedOnce(context, attempt, intercept),
    compensate: interceptedRegistration(context, attempt, 'compensate', () => {}),
    onSuccess: interceptedAddition(context, noteFollowUp),
    onFailure: interceptedRegistration(context, attempt, 'onFailure', noteFollowUp),
    onEnd: interceptedRegistration(context, attempt, 'onEnd', noteFollowUp),
  } satisfies AwaitedFunctions & Pick<TaskContext, 'resources' | 'onSuccess'>
  for (const [name, value] of Object.entries(replacements)) {
    Object.defineProperty(context, name, { value, configurable: true })
  }
  return intercept
}

// Each of the following functions returns what the replaced function returns, which the type of `attempt.call` does not express.

function interceptedProgress({ progress }: TaskContext, attempt: SimulatedAttempt): AwaitedFunctions['progress'] {
  const intercepted: AwaitedFunctions['progress'] = (...args) =>
    attempt.call({
      name: 'ctx.progress',
      site: callSite(intercepted),
      isEffect: false,
      make: () => progress(...args),
    }) as ReturnType<AwaitedFunctions['progress']>
  return intercepted
}

/** Only the end of the task shows which follow-ups of a success were added. The call takes no time, so it is not interrupted. */
function interceptedAddition({ onSuccess }: TaskContext, noteFollowUp: () => void): TaskContext['onSuccess'] {
  return (definition, input, options) => {
    noteFollowUp()
    onSuccess(definition, input, options)
  }
}

/** A registration is not an effect: it is stored once, however many attempts make it. */
function interceptedRegistration(
  context: TaskContext,
  attempt: SimulatedAttempt,
  name: 'compensate' | 'onFailure' | 'onEnd',
  onCall: () => void,
): TaskContext['compensate'] {
  // The context's own function, before it is replaced.
  const register = context[name]
  const intercepted: TaskContext['compensate'] = (definition, input, options) => {
    onCall()
    return attempt.call({
      name: `ctx.${name}(${JSON.stringify(definition.name)})`,
      site: callSite(intercepted),
      isEffect: false,
      make: () => register(definition, input, options),
    }) as Promise<void>
  }
  return intercepted
}

/** A child is an effect. A child with the same id is stored only once. */
function interceptedEnqueue(
  { enqueue }: TaskContext,
  attempt: SimulatedAttempt,
  ledger: EffectLedger,
): AwaitedFunctions['enqueue'] {
  const intercepted: AwaitedFunctions['enqueue'] = (definition, input, options) => {
    const task = JSON.stringify(definition.name)
    return attempt.call({
      name: `ctx.enqueue(${task})`,
      site: callSite(intercepted),
      isEffect: true,
      make: () => enqueue(definition, input, options),
      onSuccess(result) {
        const { id } = result as Enqueued
        ledger.add({ effect: `ctx.enqueue(${task}, ${argumentsText([input])})`, recognisedBy: `task ${id}` })
      },
    }) as ReturnType<AwaitedFunctions['enqueue']>
  }
  return intercepted
}

function interceptedOnce(
  { once }: TaskContext,
  attempt: SimulatedAttempt,
  intercept: (call: EffectCall) => unknown,
): AwaitedFunctions['once'] {
  const intercepted: AwaitedFunctions['once'] = <T extends StepResult>(
    step: string,
    run: (key: string) => T | Promise<T>,
  ) => {
    const name = `ctx.once(${JSON.stringify(step)})`
    const site = callSite(intercepted)
    const running: RunningStep = { isRecorded: false }
    return attempt.call({
      name,
      site,
      isEffect: false,
      lastPhase: 'recorded',
      make: (occurrence) =>
        once(step, async (key) => {
          const result = await attemptScope.run({ intercept, step: running }, () => run(key))
          return attempt.stepReturned(result, { name, occurrence, site })
        }),
      onSuccess() {
        running.isRecorded = true
      },
    }) as Promise<T>
  }
  return intercepted
}
