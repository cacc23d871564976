// One task made ready to run: a registry that holds its handler alone, and knows the children that this enqueues.
import {
  type Catalogue,
  defineCatalogue,
  defineHandler,
  type Handler,
  type Handlers,
  type Resources,
  type TaskContext,
  type TaskDefinition,
} from '@bullpen/contract'
import type { Middleware } from '@bullpen/engine'
import { createRegistry, DEFAULT_TIMEOUTS, type Registry, type Timeouts } from '@bullpen/engine/internal'

interface RunnableOptions<R extends Resources> {
  readonly middleware?: readonly Middleware<R>[]
  readonly limits?: Partial<Timeouts>
  readonly catalogue?: Catalogue
}

export interface RunnableTask {
  readonly registry: Registry
  /** Starts that have reached the handler. */
  readonly handled: ReadonlySet<number>
}

/** @throws BullpenError `invalid_handler` for a handler of another task. */
export function runnableTask<D extends TaskDefinition, R extends Resources>(
  definition: D,
  given: Handler<D, R> | Handler<D, R>['handle'],
  { middleware = [], limits, catalogue }: RunnableOptions<R>,
): RunnableTask {
  const handled = new Set<number>()
  const children = new Map<string, TaskDefinition>(catalogue?.definitions.map((child) => [child.name, child]))
  const { task, module, handle } =
    typeof given === 'function' ? defineHandler<D, R>(definition, import.meta.url, given) : given
  const noticing: Handler<D, R>['handle'] = (context) => {
    handled.add(context.start)
    if (catalogue === undefined) noticeChildren(context, children)
    return handle(context)
  }
  const handler = defineHandler<D, R>({ ...task, ...INLINE }, module, noticing)
  const alone = defineCatalogue({ ...definition, ...INLINE })
  // One task under its own name; the type of a computed key can't say so.
  const handlers = { [definition.name]: handler } as unknown as Handlers<typeof alone, R>
  const registry = createRegistry(alone, handlers, { middleware, limits: { ...DEFAULT_TIMEOUTS, ...limits } })
  return {
    handled,
    registry: {
      get(name) {
        const child = children.get(name)
        return registry.get(name) ?? (child && { definition: child, handle: notRun, limits: () => DEFAULT_TIMEOUTS })
      },
    },
  }
}

/** Here is no other process; and what is tested is the handler. */
const INLINE = { isolation: 'inline', memoryLimitBytes: undefined } as const

/** A worker's catalogue is not known here: whatever is enqueued is taken to be in it. */
function noticeChildren(context: TaskContext, children: Map<string, TaskDefinition>): void {
  const { enqueue } = context
  const noticing: TaskContext['enqueue'] = (definition, ...rest) => {
    children.set(definition.name, definition)
    return enqueue(definition, ...rest)
  }
  Object.defineProperty(context, 'enqueue', { value: noticing })
}

function notRun(): never {
  throw new Error('a child is not run')
}
