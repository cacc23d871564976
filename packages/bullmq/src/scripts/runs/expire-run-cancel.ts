// Lets the keys that the cancel of a pipeline run has stored in a queue expire, once none of the run's tasks is left in the queue.
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the key that refuses further tasks of the run, the rules, the progress of the run's rule, the current pass of the bulk canceller,
 *   the tasks that have returned from `active`.
 * - ARGV: the id of the run's rule, how long the first key and the progress are kept (ms).
 *
 * Deletes the rule, so that no pass has to look for its tasks. A repeated call does not prolong the times.
 */
export const expireRunCancelScript = defineScript({
  name: 'expire-run-cancel',
  kind: 'frees',
  keys: ['cancelledGroup', 'cancelRules', 'progress', 'cancelPass', 'cancelReturned'],
  args: ['rule', 'keepMs'],
  lua: `${TIME}
if redis.call('HDEL', cancelRules, rule) == 1 then redis.call('HSET', progress, 'doneAt', whole(millis())) end
redis.call('PEXPIRE', progress, keepMs, 'LT')
redis.call('PEXPIRE', cancelledGroup, keepMs, 'LT')
if redis.call('EXISTS', cancelRules) == 0 then redis.call('UNLINK', cancelPass, cancelReturned) end
`,
})
