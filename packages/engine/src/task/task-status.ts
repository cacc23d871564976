// Derives a task's status from its attempt records if the task is waiting or has ended. Every broker uses these functions.
import type { AttemptRecord, CancelReason, FinalStatus, TaskStatus } from '@bullpen/contract'

/**
 * The number of times that a task may lose its worker, whatever the cause. A loss does not count if the worker turns out to be alive. This
 * limit is the last resort for a task that kills its worker from a child process, and for a team's own Workers, which have no quarantine.
 * With BullMQ's default of 1, two crashes would make a task dead even if it did not cause them.
 */
export const MAX_LOSSES = 10

/** How many attempt records are stored with a task, including the record of a success. Older records are dropped. */
export const MAX_ATTEMPT_RECORDS = 10

/** How many retries of dead tasks are stored with a task. Older ones are dropped. */
export const MAX_RETRY_RECORDS = 10

/** Returns the status of a task that has ended without success, based on its last record. */
export function statusOfEnded(last: AttemptRecord | undefined): Exclude<FinalStatus, 'completed'> {
  if (last?.reason === 'cancelled' || last?.reason === 'queue_shutdown') return 'cancelled'
  if (last?.reason === 'queue_timeout') return 'expired'
  // If no handler was started, the total timeout expired before the first attempt.
  return last?.reason === 'total_timeout' && last.fencingToken === 0 ? 'expired' : 'dead'
}

/**
 * Returns the status of a delayed task: retrying after a failed attempt, or scheduled before the first one, after a snooze, or
 * after a worker that could not run the task has left it to another one.
 */
export function statusOfDelayed(
  attemptsMade: number,
  last: AttemptRecord | undefined,
): TaskStatus & ('retrying' | 'scheduled') {
  return attemptsMade > 0 && last?.reason !== 'snoozed' && !isLeft(last) ? 'retrying' : 'scheduled'
}

/**
 * Returns whether the last attempt ended because its worker could not run the task, and left it to another worker. An attempt with this
 * state that ended for any other reason counts.
 */
export function isLeft(last: AttemptRecord | undefined): last is AttemptRecord {
  return last?.state === 'DONE_ERROR' && !last.counted
}

const WITHOUT_START = {
  cancelled: { state: 'TERMINATED_STOP_SIGNAL', message: 'the task was cancelled' },
  queue_shutdown: { state: 'TERMINATED_STOP_SIGNAL', message: "the task's queue was shut down" },
  queue_timeout: { state: 'TERMINATED_TIMEOUT', message: 'no worker started the task within its queue timeout' },
} as const satisfies Readonly<
  Record<CancelReason | 'queue_timeout', { readonly state: string; readonly message: string }>
>

export interface EndWithoutStart {
  /** The number that the next attempt would have had. */
  readonly attempt: number
  /** The process that ends the task. */
  readonly process: string
  /** Milliseconds since 1970. */
  readonly now: number
  /** Who cancelled the task. */
  readonly by?: string | undefined
}

/** Returns the attempt record for a task that is cancelled or expires while no slot is running it. */
export function endWithoutStart(
  reason: keyof typeof WITHOUT_START,
  { attempt, process, now, by }: EndWithoutStart,
): AttemptRecord {
  const { state, message } = WITHOUT_START[reason]
  return {
    fencingToken: 0,
    attempt,
    counted: false,
    state,
    reason,
    message,
    ...(by !== undefined && { by }),
    worker: process,
    startedAt: now,
    endedAt: now,
  }
}
