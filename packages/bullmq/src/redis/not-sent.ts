// Tells a command that was never sent to Redis from one whose reply is missing.
import { BullpenError } from '@bullpen/contract'

/** The messages with which ioredis rejects a command while it is not connected. Such a command is not sent. */
const NOT_SENT = /isn't (?:writeable|ready) and enableOfflineQueue/

/** Returns whether a broker's call failed because Redis was not connected, so that the call has changed nothing. */
export function wasNotSent({ code, cause }: BullpenError): boolean {
  return code === 'redis_unavailable' && cause instanceof Error && NOT_SENT.test(cause.message)
}

/** Returns whether Redis may have run a command that was rejected with this error, which ioredis or a decoder has thrown. */
export function mayHaveRun(error: unknown): boolean {
  if (error instanceof BullpenError || !(error instanceof Error)) return false
  return error.name !== 'ReplyError' && !NOT_SENT.test(error.message)
}
