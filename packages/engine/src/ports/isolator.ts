// The port for running handlers outside this thread, where they can be killed.
import type { ChildOptions, Isolation, Log, Progress, TaskId } from '@bullpen/contract'
import type { Outcome } from '../attempt/outcome.ts'
import type { StepStore } from '../attempt/steps.ts'

/** What crosses into the isolate: plain data, since it is cloned. Times are milliseconds since 1970. */
export interface IsolatedTask {
  readonly isolation: Exclude<Isolation, 'inline'>
  /** The module that exports the handler, and the task that it handles. */
  readonly module: string
  readonly task: string
  readonly id: TaskId
  readonly fencingToken: number
  readonly attempt: number
  /** As stored: the isolate parses it again, since what a schema makes of it need not be cloneable. */
  readonly input: unknown
  readonly meta: Readonly<Record<string, string>>
  readonly enqueuedAt: number
  readonly startedAt: number
  readonly correlationId: string | undefined
  /** Of the child's heap and buffers, in bytes; for `worker` alone. */
  readonly memoryLimitBytes: number | undefined
}

/** What comes back out while the handler runs. */
export interface IsolateCalls extends StepStore {
  progress(progress: Progress): Promise<void>
  /** Any sign of life that the handler gave. */
  heartbeat(): void
  /** As the context's, with the task that is meant by its name. */
  enqueue(task: string, input: unknown, options: ChildOptions | undefined): Promise<TaskId>
  readonly log: Log
}

/** One handler at work in an isolate. */
export interface IsolatedRun {
  /**
   * How it ended. Never rejects: a crash, a `process.exit`, an escaped error and a kill are outcomes too (`panicked` with
   * `isolate_died`, `escaped_error` or `out_of_memory`).
   */
  readonly outcome: Promise<Outcome>
  /** Aborts the handler's signal, with an error of this name and message. */
  signal(reason: Error): void
  /** Ends the thread or worker at once, whatever it does; the outcome follows within moments. Twice is once. */
  kill(): void
}

/** Keeps warm threads and workers, replaces those that died, with backoff. */
export interface Isolator {
  /** What it offers; a definition that asks for another is refused when the slot is made. */
  readonly isolations: readonly IsolatedTask['isolation'][]
  run(task: IsolatedTask, calls: IsolateCalls): IsolatedRun
  /** Ends every thread and worker; nothing is left behind. */
  close(): Promise<void>
}
