// The handler of every task of a program: at each start it does what the plan of its task says.
import { AsyncLocalStorage } from 'node:async_hooks'
import { rateLimited, type TaskContext, type TaskDefinition, TaskError, type TaskId } from '@bullpen/contract'
import { type AsyncContext, attributeUncaught, type Clock } from '@bullpen/engine/internal'
import type { Doing, TaskPlan } from './program.ts'

export interface Stagehand {
  readonly clock: Clock
  readonly context: AsyncContext
  readonly planOf: (id: TaskId) => TaskPlan | undefined
  readonly child: TaskDefinition
  /** Lets go of all that hang. */
  readonly released: Promise<void>
  /** A start that has reached its handler. */
  readonly onStart: (id: TaskId, start: number) => void
}

type Context = TaskContext<TaskDefinition>

/** Each start's output tells which it was. */
export function actor(stagehand: Stagehand): (context: Context) => unknown {
  return (context) => {
    const { id, start } = context
    stagehand.onStart(id, start)
    const doing = stagehand.planOf(id)?.doings[start - 1] ?? { do: 'return' }
    return perform(doing, context, stagehand)
  }
}

function perform(doing: Doing, context: Context, stagehand: Stagehand): unknown {
  const { start, signal } = context
  const output = { n: start }
  const { clock, released } = stagehand
  const pass = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve))
  switch (doing.do) {
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
      return context.enqueue(stagehand.child, { n: start }, { key: 'only' }).then(() => output)
    case 'return later':
      return pass(doing.ms).then(() => output)
    case 'throw later':
      return pass(doing.ms).then(() => Promise.reject(new TaskError('busy', 'not now')))
    case 'escape':
      clock.after(
        Math.ceil(doing.ms / 8),
        AsyncLocalStorage.bind(() => void attributeUncaught(new Error('escaped'), stagehand.context)),
      )
      return pass(doing.ms).then(() => output)
    case 'snooze':
      return context.snooze(`${doing.ms}ms`)
    case 'rate limit':
      throw rateLimited(`${doing.ms}ms`)
    case 'beat':
      return beating(context, pass, doing.ms).then(() => output)
    case 'leave when told':
    case 'return when told':
      return Promise.race([
        released,
        new Promise<void>((resolve, reject) => {
          const told = doing.do === 'return when told' ? resolve : () => reject(signal.reason)
          signal.addEventListener('abort', () => told())
        }),
      ]).then(() => output)
    case 'hang':
      return released.then(() => output)
  }
}

async function beating(context: Context, pass: (ms: number) => Promise<void>, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 4) {
    await pass(4)
    context.heartbeat()
    await context.progress(Math.min(1, passed / ms))
  }
}
