// Deletes the cancel rules for which a whole pass did not find a matching task.

import { FENCE, MATCHING_RULE, TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/**
 * A pass misses a task that was fetched before the pass reached the place where the task waited, and that returned from `active`
 * before the pass reached `active`. The set `cancelReturned` holds these tasks, and this script empties it page by page. In the
 * current pass's hash, the script records each rule that matches a task in the set. Once the set is empty, the script deletes the
 * other rules.
 *
 * The script may be sent again if its reply is lost. The recorded rules are kept until the next pass begins, so a repeated call
 * does not delete a rule because the first call has emptied the set. A call that belongs to an earlier pass, whose records are
 * gone, does nothing.
 *
 * - KEYS: the queue's fencing number, the rules, the set, the current pass.
 * - ARGV: the leader's number, the id of the pass, the prefix of the queue's keys, the prefix of the rules' progress, the rules
 *   as JSON, how long to keep the progress of a rule, and that of the rule of a group or run (ms), how many tasks to examine.
 *
 * Returns whether nothing is left to do. If the result is false, there are more tasks in the set, and the caller runs the script
 * again. If there is a newer leader or a newer pass, no rule is deleted.
 */
export const forgetRules = defineScript({
  name: 'forget-rules',
  kind: 'frees',
  keys: ['leader', 'cancelRules', 'cancelReturned', 'cancelPass'],
  args: ['fencing', 'pass', 'base', 'progress', 'rulesText', 'keepMs', 'groupKeepMs', 'limit'],
  lua: `${TIME}${FENCE}${MATCHING_RULE}
if is_deposed(leader, fencing) or redis.call('HGET', cancelPass, 'id') ~= pass then return 1 end
local rules = decode_json(rulesText)
for _, id in ipairs(redis.call('SPOP', cancelReturned, limit)) do
  local i = matching_rule(base, rules, id)
  if i then redis.call('HSET', cancelPass, rules[i].id, 'matches') end
end
if redis.call('EXISTS', cancelReturned) == 1 then return 0 end
local now = whole(millis())
for _, rule in ipairs(rules) do
  if redis.call('HEXISTS', cancelPass, rule.id) == 0 and redis.call('HDEL', cancelRules, rule.id) == 1 then
    redis.call('HSET', progress .. rule.id, 'doneAt', now)
    redis.call('PEXPIRE', progress .. rule.id, rule.group and groupKeepMs or keepMs)
  end
end
if redis.call('EXISTS', cancelRules) == 0 then redis.call('DEL', cancelPass) end
return 1
`,
  answer: (reply) => reply === 1,
})
