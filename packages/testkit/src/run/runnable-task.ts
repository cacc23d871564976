// Makes one task runnable by creating a registry that contains its handler and the definitions of the child tasks that it
// enqueues.
import {
  type Catalogue,
  defineCatalogue,
  defineHandler,
  type Handler,
  type Resources,
  type TaskContext,
  type TaskDefinition,
} from '@bullpen/contract'
import { toHandlers } from '@bullpen/contract/internal'
import type { Middleware } from '@bullpen/engine'
import { createRegistry, DEFAULT_TIMEOUTS, inlined, type Registry, type Timeouts } from '@bullpen/engine/internal'

interface RunnableOptions<R extends Resources> {
  readonly middleware?: readonly Middleware<R>[]
  readonly timeouts?: Partial<Timeouts>
  readonly catalogue?: Catalogue
}

export interface RunnableTask {
  readonly registry: Registry
  /** The fencing tokens of the attempts that have reached the handler. */
  readonly handled: ReadonlySet<number>
}

/** @throws BullpenError `invalid_handler` if the handler belongs to another task. */
export function runnableTask<D extends TaskDefinition, R extends Resources>(
  definition: D,
  given: Handler<D, R> | Handler<D, R>['handle'],
  { middleware = [], timeouts, catalogue }: RunnableOptions<R>,
): RunnableTask {
  const handled = new Set<number>()
  const children = new Map<string, TaskDefinition>(catalogue?.definitions.map((child) => [child.name, child]))
  const { task, module, handle } =
    typeof given === 'function' ? defineHandler<D, R>(definition, import.meta.url, given) : given
  const recording: Handler<D, R>['handle'] = (context) => {
    handled.add(context.fencingToken)
    if (catalogue === undefined) recordChildren(context, children)
    return handle(context)
  }
  // The testkit does not test isolation.
  const handler = defineHandler<D, R>(inlined(task), module, recording)
  // The catalogue does not contain the follow-ups of the definition, which are not run.
  const alone = defineCatalogue({ ...inlined(definition), followUps: undefined })
  const handlers = toHandlers<typeof alone, R>(alone, { [definition.name]: handler })
  const registry = createRegistry(alone, handlers, { middleware, timeouts: { ...DEFAULT_TIMEOUTS, ...timeouts } })
  const { followUps } = definition
  return {
    handled,
    registry: {
      get(name) {
        const own = registry.get(name)
        if (own !== undefined) return { ...own, definition: { ...own.definition, followUps } }
        const child = children.get(name)
        return child && { definition: child, handle: notRun, timeouts: () => DEFAULT_TIMEOUTS }
      },
    },
  }
}

/** The functions of the context whose first argument is another task's definition. */
const TAKE_DEFINITIONS = ['enqueue', 'onSuccess', 'onFailure', 'onEnd', 'compensate'] as const

/**
 * Records the definitions of the tasks that the handler enqueues or registers. If no catalogue is given, each of them is assumed to be
 * in the worker's catalogue.
 */
function recordChildren(context: TaskContext, children: Map<string, TaskDefinition>): void {
  for (const name of TAKE_DEFINITIONS) {
    // The context's own function, before it is replaced.
    const own = context[name] as (definition: TaskDefinition, ...rest: readonly unknown[]) => unknown
    const value: typeof own = (definition, ...rest) => {
      children.set(definition.name, definition)
      return own(definition, ...rest)
    }
    Object.defineProperty(context, name, { value, configurable: true })
  }
}

function notRun(): never {
  throw new Error('the testkit does not run child tasks')
}
