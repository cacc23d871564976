// Tells a command that has had no effect from one whose reply is missing.
import { BullpenError } from '@bullpen/contract'
import { isRefusedForNow } from './outages/error-replies.ts'

/** The messages with which ioredis rejects a command while it is not connected. Such a command is not sent. */
const NOT_SENT = /isn't (?:writeable|ready) and enableOfflineQueue/

/** Returns whether a broker's call failed because Redis was not connected, or refused it, so that the call has changed nothing. */
export function hadNoEffect({ code, cause, hadNoEffect: isKnown }: BullpenError): boolean {
  if (isKnown) return true
  if (code !== 'redis_unavailable' || !(cause instanceof Error)) return false
  return NOT_SENT.test(cause.message) || isRefusedForNow(cause)
}

/** Returns whether Redis may have run a command that was rejected with this error, which ioredis or a decoder has thrown. */
export function mayHaveRun(error: unknown): boolean {
  if (error instanceof BullpenError) return error.code === 'not_replicated'
  if (!(error instanceof Error)) return false
  return error.name !== 'ReplyError' && !NOT_SENT.test(error.message)
}
