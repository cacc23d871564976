// Applies the isolation that a pool's settings ask for to the long tasks whose definitions do not set one.
import { BullpenError, type Catalogue, type Handlers, type Isolation, type Resources } from '@bullpen/contract'
import { handlersByName, toHandlers } from '@bullpen/contract/internal'

interface InlineHandler {
  readonly module: string
}

export interface IsolatedByPool<C extends Catalogue, R extends Resources> {
  readonly catalogue: C
  readonly handlers: Handlers<C, R>
  /** The handlers that would otherwise run in the worker's own thread, as they were given, by task. */
  readonly isolated: ReadonlyMap<string, InlineHandler>
}

/** `isolationOf` returns the isolation of a queue's pool, or undefined if its settings leave it to the definitions. */
export function isolateByPool<C extends Catalogue, R extends Resources>(
  catalogue: C,
  handlers: Handlers<C, R>,
  isolationOf: (queue: string) => Isolation | undefined,
): IsolatedByPool<C, R> {
  const given = handlersByName(handlers)
  const isolated = new Map<string, InlineHandler>()
  const replaced: Record<string, unknown> = { ...given }
  const definitions = catalogue.definitions.map((definition) => {
    const { name, queue, isIsolationOpen } = definition
    const handler = given[name]
    const isolation = isolationOf(queue)
    // The source of a pipeline needs its run, which only the worker's own thread has. A missing handler is reported elsewhere.
    const stays = !isIsolationOpen || handler === undefined || 'pipeline' in handler
    if (stays || isolation === undefined || isolation === 'inline') return definition
    isolated.set(name, handler)
    replaced[name] = { ...handler, task: { ...handler.task, isolation } }
    return { ...definition, isolation }
  })
  if (isolated.size === 0) return { catalogue, handlers, isolated }
  // Only the isolation of definitions and handlers has changed, so their types are the same.
  return { catalogue: { ...catalogue, definitions }, handlers: toHandlers<C, R>(catalogue, replaced), isolated }
}

/** @throws BullpenError `invalid_configuration` if a handler cannot run outside the worker's own thread. */
export async function assertIsolable(
  isolated: ReadonlyMap<string, InlineHandler>,
  fits: (handler: InlineHandler) => Promise<boolean>,
): Promise<void> {
  const checked = await Promise.all([...isolated].map(async ([name, handler]) => ((await fits(handler)) ? [] : [name])))
  const unfit = checked.flat()
  if (unfit.length === 0) return
  throw new BullpenError(
    'invalid_configuration',
    `invalid configuration: poolSettings (BULLPEN_WORKER_POOL_SETTINGS) isolates ${unfit.join(', ')}, but a thread or child process cannot run ${unfit.length === 1 ? 'its handler' : 'their handlers'}; export each handler from a file other than the program, and open every resource in isolatedResources as well, or set isolation: 'inline' in the definition`,
  )
}
