// Lets what the cancel of a pipeline's run has stored in its queues expire, once the run has ended.
import type { RunId } from '@bullpen/contract'
import { runToken } from '@bullpen/engine/internal'
import { queueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'
import type { RunQueues } from './run-record.ts'

/**
 * For how long after its end no task of a run is added, in ms.
 *
 * A run ends only when every task that it has started is reported as ended, so that an add that arrives later is a second one. Only a
 * process that has been frozen sends it: other processes give up a command after less than a second, and the leader takes over what was
 * claimed more than five seconds ago. Until the end, the key is kept for a day (../scripts/cancel/store-rule.ts), because the leader may be
 * unable to reach the run for longer.
 */
const REFUSED_AFTER_END_MS = 10_000

/** Idempotent. Takes one round trip to each node. */
export async function expireRunCancels(
  redis: Commander,
  namespace: string,
  id: RunId,
  { queues, reduceQueue }: RunQueues,
): Promise<void> {
  const keys = queues.map((queue) => queueKeys(namespace, queue).cancelledGroup(runToken(id, false)))
  if (reduceQueue !== undefined) keys.push(queueKeys(namespace, reduceQueue).cancelledGroup(runToken(id, true)))
  // LT: a repeated call does not prolong the time.
  await Promise.all(keys.map((key) => redis.pexpire(key, REFUSED_AFTER_END_MS, 'LT')))
}
