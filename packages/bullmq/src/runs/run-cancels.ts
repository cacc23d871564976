// Lets what the cancel of a pipeline's run has stored in its queues expire, once the run has ended.
//
// The rules of a run are usually deleted here, and not by the bulk canceller, which would have to look through each queue and
// would take seconds. This is safe because a run ends only when every task that it has started has ended. The exception is a
// run that was ended an hour after it was stopped, although it still had tasks. The bulk canceller deletes its rules once it
// finds none of these tasks any more.
import { FORCED_RUN_END_MS, type Run, type RunRef, runRuleId, runToken } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { queueKeys } from '../keys.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { expireRunCancelScript } from '../store/scripts.ts'
import type { RunQueues } from './run-record.ts'

/**
 * For how long after its end no task of a run is added, in ms.
 *
 * A run ends only when every task that it has started is reported as ended, so that an add that arrives later is a second one. Only a
 * process that has been frozen sends it: other processes give up a command after less than a second, and the leader takes over what was
 * claimed more than five seconds ago. Until the end, the key is kept for a day (../cancel/store-rule.lua), because the leader may be
 * unable to reach the run for longer.
 */
const REFUSED_AFTER_END_MS = 10_000

/** Whether the cancel of a run that has ended is no longer needed, because the run was not ended before its tasks. */
export function isCancelOver({ stopped, ended }: Pick<Run, 'stopped' | 'ended'>): boolean {
  return stopped !== undefined && ended !== undefined && ended.at < stopped.at + FORCED_RUN_END_MS
}

/** Idempotent. Takes one round trip to each node. */
export async function expireRunCancels(
  redis: Commander,
  namespace: string,
  run: RunRef,
  { queues, reduceQueue }: RunQueues,
): Promise<void> {
  const expire = async (token: string, queue: string): Promise<void> => {
    const keys = queueKeys(namespace, queue)
    const rule = runRuleId(token, queue, sha256)
    const names = { ...keys, cancelledGroup: keys.cancelledGroup(token), progress: keys.cancelProgress(rule) }
    await runScript(redis, expireRunCancelScript, names, { rule, keepMs: REFUSED_AFTER_END_MS })
  }
  const expiring = queues.map((queue) => expire(runToken(run, false), queue))
  if (reduceQueue !== undefined) expiring.push(expire(runToken(run, true), reduceQueue))
  await Promise.all(expiring)
}
