// Defines middleware, which is code that wraps every attempt, such as an error reporter or a database transaction.
import type { Resources, TaskContext, TaskDefinition } from '@bullpen/contract'
import type { Attempt } from './attempt.ts'

/**
 * A middleware calls `next` once and returns its result. If a middleware throws, the attempt fails with that error. The first
 * middleware in the list is the outermost.
 */
export type Middleware<R extends Resources = object> = (
  context: TaskContext<TaskDefinition, R>,
  next: () => Promise<unknown>,
) => Promise<unknown>

export type Handle = (attempt: Attempt) => unknown

/** Wraps a handler in the middleware. If there is no middleware, returns the handler itself, which avoids any overhead. */
export function wrap(handle: Handle, middleware: readonly Middleware[]): Handle {
  return middleware.reduceRight<Handle>(
    (inner, outer) => (attempt) => outer(attempt, async () => inner(attempt)),
    handle,
  )
}
