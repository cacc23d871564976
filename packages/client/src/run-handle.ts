// Defines the handle of a pipeline's run.
import type { RunErrorView, RunView } from '@bullpen/contract'
import type { Abortable, WaitOptions } from './task-handle.ts'

export interface RunHandle<Output = unknown> {
  readonly id: string
  /** Returns the run's current state, with the number of waiting, running and ended items in each stage. */
  describe(options?: Abortable): Promise<RunView>
  /** Resolves with the run once it has ended. @throws ResultTimeoutError if `timeout` expires first. */
  waitUntilEnded(options?: WaitOptions): Promise<RunView>
  /**
   * Waits until the run has ended, and returns the output of the pipeline's reduction, or undefined if it has none. Rejects with
   * {@link RunEndedError} if the run is not completed, and with {@link ResultTimeoutError} if `timeout` expires first.
   */
  output(options?: WaitOptions): Promise<Output>
  /** Cancels the run: none of its waiting tasks starts, and its running tasks receive an abort signal. Idempotent. */
  cancel(options?: Abortable & { readonly by?: string }): Promise<RunView>
  /**
   * Deletes the run with its output and its errors. Those of its tasks that are dead, expired or cancelled are kept by the retention of
   * their queues.
   *
   * @throws ProblemError `run_not_ended`, or `run_not_found`. The latter is also thrown if an earlier try of this call has deleted the run.
   */
  delete(options?: Abortable & { readonly by?: string }): Promise<void>
  /** Returns the errors that the run has collected, in the order in which they occurred. The client reads 200 at a time. */
  errors(options?: Abortable): AsyncIterable<RunErrorView>
}

/** Reports that a run has failed or was cancelled. */
export class RunEndedError extends Error {
  override readonly name = 'RunEndedError'
  /** The run as it has ended. */
  readonly run: RunView

  constructor(run: RunView) {
    const { id, result, stopReason, firstError, source, reduction } = run
    // A pipeline that collects errors has a first error, too, but this is not why the run has failed.
    const why =
      stopReason === 'first_error' && firstError !== undefined
        ? `: task ${firstError.task} is ${firstError.end}${about(firstError)}`
        : source.state === 'failed'
          ? `: its source ${source.taskId} has failed${about(source)}`
          : reduction?.state === 'failed'
            ? `: its reduction ${reduction.taskId} has failed${about(reduction)}`
            : stopReason !== undefined
              ? ` (${stopReason})`
              : reduction?.state === 'cancelled'
                ? `: its reduction ${reduction.taskId} was cancelled`
                : ''
    super(result === 'cancelled' ? `run ${id} was cancelled` : `run ${id} has failed${why}`)
    this.run = run
  }
}

function about({
  error,
}: {
  readonly error?: { readonly code: string; readonly message: string } | undefined
}): string {
  return error === undefined ? '' : `: ${error.code}: ${error.message}`
}
