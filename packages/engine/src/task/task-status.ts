// How a task stands between its attempts and after them: what every broker tells alike, whatever it keeps tasks in.
import type { AttemptRecord, CancelReason, FinalStatus, TaskStatus } from '@bullpen/contract'

/** How many deaths of its process a task survives. BullMQ's own default, 1, buries bystanders of two crashes. */
export const MAX_DEATHS = 10

/** How many ends are kept with a task, a success among them; older ones are dropped. */
export const MAX_ATTEMPT_RECORDS = 10

/** Of a task that has ended without success, by its last end: a broker keeps all three in one place. */
export function statusOfEnded(last: AttemptRecord | undefined): Exclude<FinalStatus, 'completed'> {
  if (last?.reason === 'cancelled' || last?.reason === 'queue_shutdown') return 'cancelled'
  return last?.reason === 'queue_timeout' ? 'expired' : 'dead'
}

/** Of a task that waits for its time: after a failed attempt it is retrying, before the first or after a snooze scheduled. */
export function statusOfDelayed(
  attempts: number,
  last: AttemptRecord | undefined,
): TaskStatus & ('retrying' | 'scheduled') {
  return attempts > 0 && last?.reason !== 'snoozed' ? 'retrying' : 'scheduled'
}

const UNSTARTED = {
  cancelled: { state: 'TERMINATED_STOP_SIGNAL', message: 'the task was cancelled' },
  queue_shutdown: { state: 'TERMINATED_STOP_SIGNAL', message: 'its queue was shut down' },
  queue_timeout: {
    state: 'TERMINATED_TIMEOUT',
    message: 'it waited longer than its queue timeout, and nobody took it',
  },
} as const satisfies Readonly<
  Record<CancelReason | 'queue_timeout', { readonly state: string; readonly message: string }>
>

/** The end of a task that is ended while it waits: it has no start. `now`: milliseconds since 1970. */
export function endWithoutStart(
  reason: keyof typeof UNSTARTED,
  { attempt, process, now }: { readonly attempt: number; readonly process: string; readonly now: number },
): AttemptRecord {
  const { state, message } = UNSTARTED[reason]
  return { fencingToken: 0, attempt, state, reason, message, worker: process, startedAt: now, endedAt: now }
}
