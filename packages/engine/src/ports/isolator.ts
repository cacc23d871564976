// Defines the port that runs handlers outside this thread, where they can be killed.
import type {
  ChildOptions,
  Enqueued,
  Isolation,
  Log,
  Progress,
  RegisteredOptions,
  TaskContext,
} from '@bullpen/contract'
import type { Outcome } from './attempt-result.ts'
import type { RegisteredKind, StepStore } from './steps.ts'

/** The data that is sent to the isolate. It must be plain because it is cloned. Times are in milliseconds since 1970. */
export interface IsolatedTask
  extends Pick<
    TaskContext,
    'id' | 'fencingToken' | 'attempt' | 'meta' | 'correlationId' | 'traceContext' | 'group' | 'followUpOf'
  > {
  readonly isolation: Exclude<Isolation, 'inline'>
  /** The module that exports the handler. */
  readonly module: string
  readonly task: string
  /** The input as it is stored. The isolate parses it, because a parsed value may not be cloneable. */
  readonly input: unknown
  readonly enqueuedAt: number
  readonly startedAt: number
  /** The limit for the child process's heap and buffers, in bytes. Only for `process`. */
  readonly memoryLimitBytes: number | undefined
}

/** The functions that the handler may call while it runs. */
export interface IsolateCalls extends StepStore {
  progress(progress: Progress): Promise<void>
  heartbeat(): void
  /** Works like the context's `enqueue`, but takes the name of the child's definition. */
  enqueue(task: string, input: unknown, options: ChildOptions | undefined): Promise<Enqueued>
  /** Works like the context's `onSuccess`, but takes the name of the follow-up's definition, and never throws. */
  onSuccess(task: string, input: unknown, options: RegisteredOptions | undefined): void
  /** Works like the context's `compensate`, `onFailure` or `onEnd`, but takes the name of the registered task's definition. */
  register(kind: RegisteredKind, task: string, input: unknown, options: RegisteredOptions | undefined): Promise<void>
  readonly log: Log
}

/** One handler that runs in an isolate. */
export interface IsolatedRun {
  /**
   * Resolves to how the handler ended. The promise never rejects, because a crash, a `process.exit`, an uncaught error and a kill
   * are outcomes too (`panicked` with `isolate_died`, `escaped_error` or `out_of_memory`).
   */
  readonly outcome: Promise<Outcome>
  /** Aborts the handler's signal with an error of this name and message. */
  signal(reason: Error): void
  /**
   * Ends the thread or process at once, whatever it is doing. The outcome follows shortly afterwards. A second call has no
   * effect.
   */
  kill(): void
}

/** Keeps threads and processes warm. If one dies, replaces it after a backoff. */
export interface Isolator {
  /** The isolations that this isolator offers. A registry rejects definitions that require any other. */
  readonly isolations: readonly IsolatedTask['isolation'][]
  run(task: IsolatedTask, calls: IsolateCalls): IsolatedRun
  /** Ends every thread and process. */
  close(): Promise<void>
}
