// Defines the registry, which contains everything that a pool needs to run the tasks in a catalogue. The registry is prepared
// once.
import {
  BullpenError,
  type Catalogue,
  type Handler,
  type Handlers,
  type Resources,
  type TaskDefinition,
} from '@bullpen/contract'
import { handlersByName, type PipelineHandler } from '@bullpen/contract/internal'
import { pipelineHandle } from '../pipelines/pipeline-handle.ts'
import type { Isolator } from '../ports/isolator.ts'
import type { Apart } from '../quarantine/decision.ts'
import { isolatedHandle } from './isolated-handler.ts'
import { type Handle, type Middleware, wrap } from './middleware.ts'
import { type CallTimeouts, DEFAULT_TIMEOUTS, resolveTimeouts, type Timeouts } from './timeouts.ts'

/** Short tasks have no timeouts. */
const NO_TIMEOUTS: Timeouts = Object.freeze({
  timeoutMs: 'none',
  heartbeatMs: 'none',
  queueMs: 'none',
  totalMs: 'none',
  graceMs: 'none',
})

/** A definition and its handler, which is wrapped in the middleware. */
export interface Runnable {
  readonly definition: TaskDefinition
  readonly handle: Handle
  /** Returns the timeouts of one attempt. `call` contains the timeouts that the caller set for the task. */
  readonly timeouts: (call: CallTimeouts | undefined) => Timeouts
  /** The same task in a child process, for an attempt that must run apart from others. Undefined if no process is available. */
  readonly inProcess?: Runnable | undefined
  /** Returns where the task can run apart from others. Defaults to `alone`. */
  readonly findApart?: () => Promise<Apart>
}

/** What is needed to run quarantined tasks in child processes. */
export interface QuarantineProcesses {
  readonly isolator: Isolator
  /** Returns whether this inline handler can also run in a child process. */
  readonly fits: (handler: Handler) => Promise<boolean>
  /** The memory limit of a task whose definition sets none, in bytes. */
  readonly memoryLimitBytes: number
}

export interface Registry {
  /** Returns the task's definition and handler, or undefined if the task is not in the catalogue. */
  get(task: string): Runnable | undefined
}

export interface RegistryOptions<R extends Resources> {
  /** Middleware that wraps every attempt. The first one is the outermost. */
  readonly middleware?: readonly Middleware<R>[]
  /** The timeouts for long tasks whose definitions omit them, for all queues or by queue. Defaults to {@link DEFAULT_TIMEOUTS}. */
  readonly timeouts?: Timeouts | ((queue: string) => Timeouts)
  readonly isolator?: Isolator | undefined
  /** Wraps the functions of the handlers that run in the worker's own thread, inside all middleware. By default, nothing wraps them. */
  readonly wrapInline?: ((handle: Handle) => Handle) | undefined
  /** By default, quarantined tasks do not run in child processes, unless their definitions ask for one. */
  readonly quarantine?: QuarantineProcesses | undefined
}

/**
 * Prepares every task in the catalogue.
 *
 * @throws BullpenError `invalid_handler` if a handler is missing or belongs to another task (TypeScript prevents both, but plain
 * JavaScript does not), or `isolation_unavailable` if a definition asks for an isolation that this worker does not offer.
 */
export function createRegistry<C extends Catalogue, R extends Resources>(
  catalogue: C,
  handlers: Handlers<C, R>,
  { middleware = [], timeouts = DEFAULT_TIMEOUTS, isolator, wrapInline, quarantine }: RegistryOptions<R> = {},
): Registry {
  const runnables = new Map<string, Runnable>()
  const erased = handlersByName(handlers)
  if (typeof erased !== 'object' || erased === null) {
    throw new BullpenError(
      'invalid_handler',
      'invalid handlers: expected an object with one handler for each task in the catalogue',
    )
  }
  const extra = Object.keys(erased).find((name) => !catalogue.has(name))
  if (extra !== undefined) {
    throw new BullpenError('invalid_handler', `invalid handler '${extra}': the catalogue has no task with this name`)
  }
  for (const definition of catalogue.definitions) {
    const handler = erased[definition.name]
    if (handler === undefined) {
      throw new BullpenError(
        'invalid_handler',
        `task ${definition.name} has no handler; pass a handler for each task in the catalogue`,
      )
    }
    if (typeof handler.handle !== 'function') {
      throw new BullpenError('invalid_handler', `the handler for ${definition.name} was not created with defineHandler`)
    }
    if (handler.task.name !== definition.name) {
      throw new BullpenError(
        'invalid_handler',
        `the handler passed for ${definition.name} was defined for ${handler.task.name}`,
      )
    }
    const pool = typeof timeouts === 'function' ? timeouts(definition.queue) : timeouts
    const handle = innermost(handler, isolator, wrapInline)
    const prepare = { handle, middleware: middleware as readonly Middleware[], pool }
    runnables.set(definition.name, { ...runnableOf(definition, prepare), ...apartOf(handler, quarantine, prepare) })
  }
  return { get: (task) => runnables.get(task) }
}

interface Preparation {
  readonly handle: Handle
  readonly middleware: readonly Middleware[]
  /** The timeouts for long tasks whose definitions omit them. */
  readonly pool: Timeouts
}

function runnableOf(definition: TaskDefinition, { handle, middleware, pool }: Preparation): Runnable {
  const usual = definition.kind === 'short' ? NO_TIMEOUTS : resolveTimeouts(definition, pool, undefined)
  return {
    definition,
    handle: wrap(handle, middleware),
    timeouts: (call) =>
      call === undefined || definition.kind === 'short' ? usual : resolveTimeouts(definition, pool, call),
  }
}

/**
 * Prepares the task for quarantine. In a child process, a short task runs like a long one, so that it can be killed when the
 * pool's timeout has expired.
 */
function apartOf(
  handler: Handler,
  quarantine: QuarantineProcesses | undefined,
  preparation: Preparation,
): Pick<Runnable, 'inProcess' | 'findApart'> {
  const { task } = handler
  if (task.isolation === 'process') return { findApart: async () => 'own_process' }
  // A child process has no access to the run of a pipeline.
  if (quarantine === undefined || 'pipeline' in handler) return {}
  const { isolator, fits, memoryLimitBytes } = quarantine
  const definition = { ...task, kind: 'long', isolation: 'process', memoryLimitBytes } as const
  const handle = isolatedHandle({ ...handler, task: definition }, isolator)
  // A thread imports its handler from a file, as a child process does.
  const find = async (): Promise<Apart> => (task.isolation === 'thread' || (await fits(handler)) ? 'process' : 'alone')
  let found: Promise<Apart> | undefined
  return {
    inProcess: runnableOf(definition, { ...preparation, handle }),
    findApart: () => {
      found ??= find()
      return found
    },
  }
}

function innermost(
  handler: Handler,
  isolator: Isolator | undefined,
  wrapInline: (handle: Handle) => Handle = (handle) => handle,
): Handle {
  const { name, isolation } = handler.task
  if ('pipeline' in handler) return pipelineHandle(handler as PipelineHandler<TaskDefinition, object, never>)
  if (isolation === 'inline') return wrapInline(handler.handle)
  if (isolator?.isolations.includes(isolation)) return isolatedHandle(handler, isolator)
  throw new BullpenError(
    'isolation_unavailable',
    `task ${name} requires isolation '${isolation}'; this worker supports ${['inline', ...(isolator?.isolations ?? [])].join(' and ')}`,
  )
}
