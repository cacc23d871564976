// Converts a broker's errors to a client's errors.
import { BullpenError } from '@bullpen/contract'
import { ProblemError, QUEUE_FULL_RETRY_AFTER_MS } from '@bullpen/contract/internal'
import { hadNoEffect } from '../redis/not-sent.ts'

/**
 * Converts a BullpenError to a ProblemError, and returns any other error unchanged. `taskId` is the id of the task that the
 * failed call may have stored.
 */
export function problemOf(error: unknown, taskId: string | undefined): unknown {
  if (!(error instanceof BullpenError)) return error
  const { code, message, errors, cause, taskId: owner } = error
  const isUnknown = (code === 'redis_unavailable' && !hadNoEffect(error)) || code === 'not_replicated'
  return new ProblemError({
    ...{ code, errors, cause },
    outcome: isUnknown ? 'unknown' : 'refused',
    detail: message,
    taskId: isUnknown ? (owner ?? taskId) : owner,
    retryAfterMs: code === 'queue_full' ? QUEUE_FULL_RETRY_AFTER_MS : undefined,
  })
}
