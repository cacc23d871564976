// Converts the errors of a broker to those of a client.
import { BullpenError } from '@bullpen/contract'
import { ProblemError } from '@bullpen/contract/internal'

/** The messages with which ioredis rejects a command while it is not connected. Such a command is not sent. */
const NOT_SENT = /isn't (?:writeable|ready) and enableOfflineQueue/

/**
 * Returns the error of a call as a ProblemError. `taskId` is the id of the task that the call may have stored. Other errors than
 * BullpenError are returned unchanged.
 */
export function problemOf(error: unknown, taskId: string | undefined): unknown {
  if (!(error instanceof BullpenError)) return error
  const { code, message, errors, cause, taskId: owner } = error
  const isUnknown = code === 'redis_unavailable' && !(cause instanceof Error && NOT_SENT.test(cause.message))
  return new ProblemError({
    ...{ code, errors, cause },
    outcome: isUnknown ? 'unknown' : 'refused',
    detail: message,
    taskId: isUnknown ? taskId : owner,
  })
}
