// Middleware: what wraps around every attempt, such as an error reporter or a database transaction.
import type { Handler, Resources, TaskContext, TaskDefinition } from '@bullpen/contract'

/** Calls `next` once and returns its result, or throws; what it throws is the attempt's failure. The first listed is the outermost. */
export type Middleware<R extends Resources = object> = (
  context: TaskContext<TaskDefinition, R>,
  next: () => Promise<unknown>,
) => Promise<unknown>

type Handle = (context: TaskContext) => unknown

/** The handler with its middleware around it; without any, the handler itself, which costs nothing. */
export function wrap(handler: Handler, middleware: readonly Middleware[]): Handle {
  return middleware.reduceRight<Handle>(
    (inner, outer) => (context) => outer(context, async () => inner(context)),
    handler.handle,
  )
}
