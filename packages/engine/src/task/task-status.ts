// The status of a task that waits or has ended, as every broker derives it from the attempt records.
import type { AttemptRecord, CancelReason, FinalStatus, TaskStatus } from '@bullpen/contract'

/** How often a task survives the death of its worker. BullMQ's default, 1, buries innocent tasks after two crashes. */
export const MAX_DEATHS = 10

/** How many attempt records are stored with a task, the one of a success included; older ones are dropped. */
export const MAX_ATTEMPT_RECORDS = 10

/** The status of a task that has ended without success, by its last record. */
export function statusOfEnded(last: AttemptRecord | undefined): Exclude<FinalStatus, 'completed'> {
  if (last?.reason === 'cancelled' || last?.reason === 'queue_shutdown') return 'cancelled'
  if (last?.reason === 'queue_timeout') return 'expired'
  // A total timeout that passed before the first attempt: no handler was started.
  return last?.reason === 'total_timeout' && last.fencingToken === 0 ? 'expired' : 'dead'
}

/** The status of a delayed task: retrying after a failed attempt; scheduled before the first attempt or after a snooze. */
export function statusOfDelayed(
  attemptsMade: number,
  last: AttemptRecord | undefined,
): TaskStatus & ('retrying' | 'scheduled') {
  return attemptsMade > 0 && last?.reason !== 'snoozed' ? 'retrying' : 'scheduled'
}

const WITHOUT_START = {
  cancelled: { state: 'TERMINATED_STOP_SIGNAL', message: 'the task was cancelled' },
  queue_shutdown: { state: 'TERMINATED_STOP_SIGNAL', message: 'its queue was shut down' },
  queue_timeout: { state: 'TERMINATED_TIMEOUT', message: 'no worker took it within its queue timeout' },
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

/** The record of a task that is cancelled or expires while no slot runs it. */
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
