// Determines how long a call may wait for room in its queue, so that the client does not give up before the API does.
import { milliseconds, type WhenFull } from '@bullpen/contract'
import { MAX_WAIT_S } from '@bullpen/contract/internal'

/** Stands for the policy of a queue that the client does not know, because the call names a task instead of passing its definition. */
export const UNKNOWN_POLICY = 'unknown'

/**
 * Returns how long a task with this policy may wait for room, in ms. If the policy is not known, this is the longest time that any
 * policy allows. @throws BullpenError `invalid_duration`.
 */
export function roomWaitMs(policy: WhenFull | typeof UNKNOWN_POLICY): number {
  if (policy === UNKNOWN_POLICY) return MAX_WAIT_S * 1_000
  return typeof policy === 'object' ? milliseconds(policy.block, 'whenFull.block') : 0
}
