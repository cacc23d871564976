// The registry: for each task of a catalogue, all that is needed to run it, prepared once when a pool is made.
import {
  BullpenError,
  type Catalogue,
  type Handler,
  type Handlers,
  type Resources,
  type TaskDefinition,
} from '@bullpen/contract'
import type { Isolator } from '../ports/isolator.ts'
import type { Attempt } from './attempt.ts'
import { isolatedHandle } from './isolated-handler.ts'
import { type Middleware, wrap } from './middleware.ts'
import { type CallTimeouts, DEFAULT_TIMEOUTS, resolveTimeouts, type Timeouts } from './timeouts.ts'

/** Of a short task: it is not timed. */
const NO_LIMITS: Timeouts = Object.freeze({
  timeoutMs: 'none',
  heartbeatMs: 'none',
  queueMs: 'none',
  totalMs: 'none',
  graceMs: 'none',
})

/** A definition with its handler, middleware around it. */
export interface Runnable {
  readonly definition: TaskDefinition
  readonly handle: (attempt: Attempt) => unknown
  /** What holds for one attempt, by what its caller said. */
  readonly limits: (call: CallTimeouts | undefined) => Timeouts
}

export interface Registry {
  /** Undefined for a task that this slot's catalogue does not hold. */
  get(task: string): Runnable | undefined
}

export interface RegistryOptions<R extends Resources> {
  /** Around every attempt; the first is the outermost. */
  readonly middleware?: readonly Middleware<R>[]
  /** The pool's default limits for long tasks. Default: {@link DEFAULT_TIMEOUTS}. */
  readonly limits?: Timeouts
  readonly isolator?: Isolator | undefined
}

/**
 * @throws BullpenError `invalid_handler` for a handler of another task or none at all (types refuse both, plain
 * JavaScript does not), `isolation_unavailable` for a definition that asks for an isolation that is not at hand.
 */
export function createRegistry<C extends Catalogue, R extends Resources>(
  catalogue: C,
  handlers: Handlers<C, R>,
  { middleware = [], limits: pool = DEFAULT_TIMEOUTS, isolator }: RegistryOptions<R> = {},
): Registry {
  const runnables = new Map<string, Runnable>()
  // Which context type a handler takes is checked by Handlers<C, R>; from here on all are called the same way.
  const erased = handlers as unknown as Readonly<Record<string, Handler | undefined>>
  if (typeof erased !== 'object' || erased === null) {
    throw new BullpenError('invalid_handler', 'handlers is an object with one handler for each task of the catalogue')
  }
  const extra = Object.keys(erased).find((name) => !catalogue.has(name))
  if (extra !== undefined) {
    throw new BullpenError('invalid_handler', `there is a handler for '${extra}', and no such task in the catalogue`)
  }
  for (const definition of catalogue.definitions) {
    const handler = erased[definition.name]
    if (handler === undefined) {
      throw new BullpenError(
        'invalid_handler',
        `task ${definition.name} has no handler; pass one for each task of the catalogue`,
      )
    }
    if (typeof handler.handle !== 'function') {
      throw new BullpenError('invalid_handler', `the handler of ${definition.name} is not what defineHandler returned`)
    }
    if (handler.task.name !== definition.name) {
      throw new BullpenError(
        'invalid_handler',
        `the handler passed for ${definition.name} was defined for ${handler.task.name}`,
      )
    }
    const handle = innermost(handler, isolator)
    const usual = definition.kind === 'short' ? NO_LIMITS : resolveTimeouts(definition, pool, undefined)
    runnables.set(definition.name, {
      definition,
      handle: wrap(handle, middleware as readonly Middleware[]),
      limits: (call) =>
        call === undefined || definition.kind === 'short' ? usual : resolveTimeouts(definition, pool, call),
    })
  }
  return { get: (task) => runnables.get(task) }
}

function innermost(handler: Handler, isolator: Isolator | undefined): (attempt: Attempt) => unknown {
  const { name, isolation } = handler.task
  if (isolation === 'inline') return handler.handle
  if (isolator?.isolations.includes(isolation)) return isolatedHandle(handler, isolator)
  throw new BullpenError(
    'isolation_unavailable',
    `task ${name} asks for isolation '${isolation}'; this slot offers ${['inline', ...(isolator?.isolations ?? [])].join(' and ')}`,
  )
}
