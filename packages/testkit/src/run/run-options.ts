// The options of a run of one task.
import type { CallOptions, Catalogue, Duration, Resources } from '@bullpen/contract'
import type { Middleware } from '@bullpen/engine'
import type { AsyncContext, Random, Timeouts } from '@bullpen/engine/internal'
import type { FakeClock } from '../fake-clock.ts'

/** Every `…At` is a time after the enqueue. */
export interface RunTaskOptions<R extends Resources = object> {
  /** The resources that the worker would give to its handlers. */
  readonly resources?: R
  /** The caller's options: delay, timeouts, tags, meta. */
  readonly call?: CallOptions
  readonly correlationId?: string
  /** Default: the definition's. */
  readonly maxAttempts?: number
  /**
   * Default: a fake clock that stands still while code runs and then jumps to the next timer, so that a timeout of 5 minutes
   * takes no time. Pass your own {@link FakeClock} if the handler uses it too. Pass `'real'` if the handler waits for a timer, a
   * file or a socket: time is then real while the handler runs, and only the waits between attempts are skipped.
   */
  readonly clock?: FakeClock | 'real'
  /** Ends the run in whatever status the task has. Default '30d', or '1m' with a real clock. */
  readonly endAt?: Duration
  /** Cancels the task, if it is running. */
  readonly cancelAt?: Duration
  /** Stops its slot hard: the task is requeued, and started again if there are more {@link slots}. */
  readonly stopAt?: Duration
  /** Drains its pool, as SIGTERM does. No other pool starts the task again. */
  readonly drainAt?: Duration
  /** How long the handler may run on after `drainAt` before it is signalled. Default '20s'. */
  readonly drainTimeout?: Duration
  /** Takes away its lock. The task is started again some seconds later. */
  readonly lockLostAt?: Duration
  /** Kills its worker. Another worker starts the task again some seconds later; the result of the first handler is ignored. */
  readonly crashAt?: Duration
  /** Slots of the pool. A second one starts a task that `stopAt` has requeued. Default 1. */
  readonly slots?: number
  readonly middleware?: readonly Middleware<R>[]
  /** The worker's timeouts, for a definition that sets none. Default: those of a worker. */
  readonly timeouts?: Partial<Timeouts>
  /** The worker's catalogue: a child that is not in it is refused. Default: every child is accepted. */
  readonly catalogue?: Catalogue
  /** For the jitter of backoffs, from 0 to 1. Default: always 0.5, which is no jitter. */
  readonly random?: Random
  /** Finds the attempt that an uncaught error belongs to. Default: such an error reaches the test runner. */
  readonly context?: AsyncContext
}
