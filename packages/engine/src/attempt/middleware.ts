// Middleware: code around every attempt, such as an error reporter or a database transaction.
import type { Resources, TaskContext, TaskDefinition } from '@bullpen/contract'
import type { Attempt } from './attempt.ts'

/** Calls `next` once and returns its result. What it throws is the attempt's failure. The first middleware is the outermost. */
export type Middleware<R extends Resources = object> = (
  context: TaskContext<TaskDefinition, R>,
  next: () => Promise<unknown>,
) => Promise<unknown>

type Handle = (attempt: Attempt) => unknown

/** The handler with its middleware around it; the handler itself when there is none, so that it costs nothing. */
export function wrap(handle: Handle, middleware: readonly Middleware[]): Handle {
  return middleware.reduceRight<Handle>(
    (inner, outer) => (attempt) => outer(attempt, async () => inner(attempt)),
    handle,
  )
}
