// What may be said of the run of one task.
import type { CallOptions, Catalogue, Duration, Resources } from '@bullpen/contract'
import type { Middleware } from '@bullpen/engine'
import type { AsyncContext, Random, Timeouts } from '@bullpen/engine/internal'
import type { FakeClock } from '../fake-clock.ts'

/** All `…At` are counted from the enqueueing. */
export interface RunTaskOptions<R extends Resources = object> {
  /** What the worker would give to its handlers. */
  readonly resources?: R
  /** As the caller's: delay, limits, meta. */
  readonly call?: CallOptions
  readonly correlationId?: string
  /** How often it may be tried. Default: what the definition says. */
  readonly attempts?: number
  /**
   * Default: a clock of its own, that stands still while code runs and jumps to whatever is next: a timeout of 5 minutes
   * takes no time. Your own {@link FakeClock}, where the handler uses it, too. `'real'`, for a handler that waits for what
   * is real, such as a file, a socket or a timer: time is real while it runs, and only the waits between are skipped.
   */
  readonly clock?: FakeClock | 'real'
  /** Ends the run, whatever the task is doing by then. Default '30d'; with a real clock '1m'. */
  readonly limit?: Duration
  /** The task is cancelled, if it runs then. */
  readonly cancelAt?: Duration
  /** Its worker is stopped hard: the task is handed back, and taken again where there are more {@link workers}. */
  readonly stopAt?: Duration
  /** Its pool is drained, as by SIGTERM. No other one takes the task. */
  readonly drainAt?: Duration
  /** How long it may go on after `drainAt` until it is signalled. Default '20s'. */
  readonly drainTimeout?: Duration
  /** Its lock is lost; it is found and started again, some seconds later. */
  readonly lockLostAt?: Duration
  /** Its process dies; another one finds it, some seconds later. The handler itself can't be ended, and is heard no more. */
  readonly crashAt?: Duration
  /** How many there are: a second one takes what `stopAt` leaves behind. Default 1. */
  readonly workers?: number
  readonly middleware?: readonly Middleware<R>[]
  /** The worker's, for what the definition leaves out. Default: the worker's own defaults. */
  readonly limits?: Partial<Timeouts>
  /** The worker's: a child that is not in it is refused. Default: whatever the handler enqueues is in it. */
  readonly catalogue?: Catalogue
  /** For the jitter of waits, from 0 to 1. Default: always 0.5, which is none. */
  readonly random?: Random
  /** For `chargeEscape`, where a test charges errors that escape the handler. Otherwise your test runner hears of them. */
  readonly context?: AsyncContext
}
