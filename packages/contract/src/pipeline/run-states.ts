// Defines the states of a pipeline run, why it stops early, and the results with which it ends.

/**
 * - `running`: the source or a stage has work.
 * - `stopping`: no further item starts, and the tasks that have started are awaited.
 * - `reducing`: the run has all results, and the reduction computes the output from them.
 * - `ended`: no task of the run exists any more. An ended run never changes again.
 */
export const RUN_STATES = ['running', 'stopping', 'reducing', 'ended'] as const

export type RunPhase = (typeof RUN_STATES)[number]

/**
 * - `completed`: the source has ended or enough results were taken, and the output was produced, whether or not errors were collected.
 * - `cancelled`: the run was cancelled by request.
 * - `failed`: an item has failed and errors are not collected, the source or the reduction has failed, or a limit was exceeded.
 */
export const RUN_RESULTS = ['completed', 'failed', 'cancelled'] as const

export type RunResult = (typeof RUN_RESULTS)[number]

/**
 * Why a run stops before its source has ended: by request, because an item has failed, because its time limit has passed, because the
 * results have become too large to keep, or because the run has as many results as `take` requests.
 */
export const RUN_STOP_REASONS = ['cancelled', 'first_error', 'run_timeout', 'results_too_large', 'taken'] as const

export type RunStopReason = (typeof RUN_STOP_REASONS)[number]

/** What happens to a run when an item fails: the run is stopped, or the error is kept and the other items continue. */
export const RUN_ON_ERROR = ['cancel', 'collect'] as const

export type RunOnError = (typeof RUN_ON_ERROR)[number]

/**
 * - `active`: a task of the source exists.
 * - `parked`: the source waits until fewer items are in the pipeline. No task of the source exists, so that it takes no slot.
 * - `done`: the source has yielded its last item, or is not needed any more.
 * - `failed`: the source's task has ended without yielding its last item.
 */
export const SOURCE_STATES = ['active', 'parked', 'done', 'failed'] as const

export type SourceState = (typeof SOURCE_STATES)[number]

/**
 * - `pending`: the run does not have all results yet, or has ended without its reduction.
 * - `running`: the reduction's task has not ended.
 * - `completed`, `failed`, `cancelled`: the reduction's task has ended. It is cancelled with its run, or by a request of its own.
 */
export const REDUCTION_STATES = ['pending', 'running', 'completed', 'failed', 'cancelled'] as const

export type ReductionState = (typeof REDUCTION_STATES)[number]
