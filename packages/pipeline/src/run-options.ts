// Defines the options of a run, and what a run returns.
import type { Collected, RunOnError } from '@bullpen/contract'

export interface RunOptions {
  /** Cancels the run when it aborts. */
  readonly signal?: AbortSignal | undefined
}

/** The input can be omitted if the source does not use it. */
export type RunArguments<Input> = undefined extends Input
  ? [input?: Input, options?: RunOptions]
  : [input: Input, options?: RunOptions]

/** What a run of a pipeline of tasks returns: its output and, if it collects errors, these too. */
export type TaskRunResult<OnError extends RunOnError, Output> = OnError extends 'collect' ? Collected<Output> : Output
