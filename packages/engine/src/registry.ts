// The registry: for each task of a catalogue, all that is needed to run it, prepared once when a pool is made.
import {
  BullpenError,
  type Catalogue,
  type Handler,
  type Handlers,
  type Resources,
  type TaskContext,
  type TaskDefinition,
} from '@bullpen/contract'
import { type Middleware, wrap } from './middleware.ts'

/** A definition with its handler, middleware around it. */
export interface Runnable {
  readonly definition: TaskDefinition
  readonly handle: (context: TaskContext) => unknown
}

export interface Registry {
  /** Undefined for a task that this worker's catalogue does not hold. */
  get(task: string): Runnable | undefined
}

/**
 * @throws BullpenError `invalid_handler` for a handler of another task or none at all (types refuse both, plain
 * JavaScript does not), `isolation_unavailable` for a definition that asks for an isolation that is not at hand.
 */
export function makeRegistry<C extends Catalogue, R extends Resources>(
  catalogue: C,
  handlers: Handlers<C, R>,
  middleware: readonly Middleware<R>[],
): Registry {
  const runnables = new Map<string, Runnable>()
  // Which context type a handler takes is checked by Handlers<C, R>; from here on all are called the same way.
  const erased = handlers as unknown as Readonly<Record<string, Handler | undefined>>
  for (const definition of catalogue.definitions) {
    const handler = erased[definition.name]
    if (handler === undefined) {
      throw new BullpenError(
        'invalid_handler',
        `task ${definition.name} has no handler; pass one for each task of the catalogue`,
      )
    }
    if (handler.task.name !== definition.name) {
      throw new BullpenError(
        'invalid_handler',
        `the handler passed for ${definition.name} was defined for ${handler.task.name}`,
      )
    }
    if (definition.isolation !== 'inline') {
      throw new BullpenError(
        'isolation_unavailable',
        `task ${definition.name} asks for isolation '${definition.isolation}'; this worker runs tasks inline only`,
      )
    }
    runnables.set(definition.name, { definition, handle: wrap(handler, middleware as readonly Middleware[]) })
  }
  return { get: (task) => runnables.get(task) }
}
