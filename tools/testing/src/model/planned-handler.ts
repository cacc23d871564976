// Creates the handler for all tasks in a program. Each attempt behaves as its task's plan specifies.
import { AsyncLocalStorage } from 'node:async_hooks'
import { rateLimited, type TaskContext, type TaskDefinition, TaskError, type TaskId } from '@bullpen/contract'
import { type AsyncContext, attributeUncaught, type Clock } from '@bullpen/engine/internal'
import type { Behaviour, TaskPlan } from './program.ts'

export interface PlannedHandlerOptions {
  readonly clock: Clock
  readonly context: AsyncContext
  readonly planOf: (id: TaskId) => TaskPlan | undefined
  readonly child: TaskDefinition
  /** Ends every handler that hangs. */
  readonly released: Promise<void>
  /** Called when an attempt has reached its handler. */
  readonly onStart: (id: TaskId, fencingToken: number) => void
}

type Context = TaskContext<TaskDefinition>

/** Creates the handler. The output of each attempt is its fencing token. */
export function plannedHandler(options: PlannedHandlerOptions): (context: Context) => unknown {
  return (context) => {
    const { id, fencingToken } = context
    options.onStart(id, fencingToken)
    const behaviour = options.planOf(id)?.behaviours[fencingToken - 1] ?? { do: 'return' }
    return behave(behaviour, context, options)
  }
}

function behave(behaviour: Behaviour, context: Context, options: PlannedHandlerOptions): unknown {
  const { fencingToken, signal } = context
  const output = { n: fencingToken }
  const { clock, released } = options
  const pass = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve))
  switch (behaviour.do) {
    case 'return':
      return output
    case 'throw':
      throw new TaskError('busy', 'not now')
    case 'refuse':
      throw new TaskError('gone', 'never', { retryable: false })
    case 'panic':
      throw new RangeError('broken')
    case 'return nonsense':
      return { n: 'nonsense' }
    case 'enqueue a child':
      return context.enqueue(options.child, { n: fencingToken }, { childKey: 'only' }).then(() => output)
    case 'return later':
      return pass(behaviour.ms).then(() => output)
    case 'throw later':
      return pass(behaviour.ms).then(() => Promise.reject(new TaskError('busy', 'not now')))
    case 'escape':
      clock.after(
        Math.ceil(behaviour.ms / 8),
        AsyncLocalStorage.bind(() => void attributeUncaught(new Error('escaped'), options.context)),
      )
      return pass(behaviour.ms).then(() => output)
    case 'snooze':
      return context.snooze(`${behaviour.ms}ms`)
    case 'rate limit':
      throw rateLimited(`${behaviour.ms}ms`)
    case 'throttle its key':
      throw rateLimited(`${behaviour.ms}ms`, { of: 'concurrencyKey' })
    case 'heartbeat':
      return sendHeartbeats(context, pass, behaviour.ms).then(() => output)
    case 'throw on signal':
    case 'return on signal':
      return Promise.race([
        released,
        new Promise<void>((resolve, reject) => {
          const onAbort = behaviour.do === 'return on signal' ? resolve : () => reject(signal.reason)
          signal.addEventListener('abort', () => onAbort())
        }),
      ]).then(() => output)
    case 'hang':
      return released.then(() => output)
  }
}

async function sendHeartbeats(context: Context, pass: (ms: number) => Promise<void>, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 4) {
    await pass(4)
    context.heartbeat()
    await context.progress(Math.min(1, passed / ms))
  }
}
