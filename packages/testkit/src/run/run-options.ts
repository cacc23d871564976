// The options for running one task.
import type { CallOptions, Catalogue, Duration, Resources, TraceContext } from '@bullpen/contract'
import type { Middleware } from '@bullpen/engine'
import type { AsyncContext, Random, Timeouts } from '@bullpen/engine/internal'
import type { FakeClock } from '../fake-clock.ts'

/** The options for running a task. Each option whose name ends in `At` is a time relative to when the task is enqueued. */
export interface RunTaskOptions<R extends Resources = object> {
  /** The resources that the worker would pass to its handlers. */
  readonly resources?: R
  /** The caller's options: delay, timeouts, tags and meta. */
  readonly call?: CallOptions
  readonly correlationId?: string
  readonly traceContext?: TraceContext
  /** The group whose member the task is, for `ctx.group`. */
  readonly group?: { readonly id: string; readonly member: number }
  /** The id of the task or group whose end has enqueued the task, for `ctx.followUpOf` and, if it is a group, for `ctx.group`. */
  readonly followUpOf?: string
  /** Defaults to the definition's setting. */
  readonly maxAttempts?: number
  /**
   * The clock of the run. By default, it is a fake clock that stands still while code runs and then jumps to the next timer, so
   * that a timeout of 5 minutes takes no time. Pass your own {@link FakeClock} if the handler uses it too. Pass `'real'` if the
   * handler waits for a timer, a file or a socket. Time is then real while the handler runs, and only the waits between attempts
   * are skipped.
   */
  readonly clock?: FakeClock | 'real'
  /** Ends the run at this time, whatever status the task has. Defaults to '30d', or to '1m' with a real clock. */
  readonly endAt?: Duration
  /** Cancels the task if it is running. */
  readonly cancelAt?: Duration
  /** Stops the task's slot hard. The task is requeued, and is started again if there are more {@link slots}. */
  readonly stopAt?: Duration
  /** Drains the task's pool, as SIGTERM would. No other pool starts the task again. */
  readonly drainAt?: Duration
  /** How long the handler may continue after `drainAt` before it receives an abort signal. Defaults to '20s'. */
  readonly drainTimeout?: Duration
  /** Removes the task's lock. The task is started again a few seconds later. */
  readonly lockLostAt?: Duration
  /** Kills the task's worker. Another worker starts the task again some seconds later, and the first handler's result is ignored. */
  readonly crashAt?: Duration
  /** How many slots the pool has. A second slot starts a task that `stopAt` has requeued. Defaults to 1. */
  readonly slots?: number
  readonly middleware?: readonly Middleware<R>[]
  /** The worker's timeouts, which apply if the definition does not set its own. They default to a worker's defaults. */
  readonly timeouts?: Partial<Timeouts>
  /** The worker's catalogue. A child that is not in it is rejected. By default, every child is accepted. */
  readonly catalogue?: Catalogue
  /** Returns the number from 0 to 1 that sets the jitter of backoffs. By default, it is always 0.5, which means no jitter. */
  readonly random?: Random
  /** Finds the attempt that an uncaught error belongs to. By default, such an error reaches the test runner. */
  readonly context?: AsyncContext
}
