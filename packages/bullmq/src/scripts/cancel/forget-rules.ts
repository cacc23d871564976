// Deletes the cancel rules for which a whole pass has not found a matching task.
import { FENCE } from '../includes/fence.ts'
import { MATCHING_RULE } from '../includes/matching-rule.ts'
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/**
 * A task may have been fetched before the pass reached it in the waiting list, and have returned from `active` before the pass
 * reached it there. Such tasks are in the set `cancelReturned`, which this script empties page by page. Once the set is empty,
 * the script deletes the rules, except those that match a task in the set.
 *
 * KEYS: the queue's fencing number, the rules, the set. ARGV: the leader's number, the prefix of the queue's keys, the prefix of
 * the rules' progress, the rules as JSON, how long to keep the progress in ms, how many tasks to look at. Returns the positions
 * of the rules that match a task, counted from 1, and whether this was the last page. If it was not, the caller runs the script
 * again with the rules that are left. If there is a newer leader, no rule is deleted, and there is no further page.
 */
export const forgetRules = defineScript({
  name: 'forget-rules',
  kind: 'frees',
  keys: ['leader', 'cancelRules', 'cancelReturned'],
  args: ['fencing', 'base', 'progress', 'rulesText', 'keepMs', 'limit'],
  lua: `${TIME}${FENCE}${MATCHING_RULE}
if is_deposed(leader, fencing) then return { {}, 1 } end
local rules = cjson.decode(rulesText)
local matches, positions = {}, {}
for _, id in ipairs(redis.call('SPOP', cancelReturned, limit)) do
  local i = matching_rule(base, rules, id)
  if i and not matches[i] then
    matches[i] = true
    positions[#positions + 1] = i
  end
end
if redis.call('EXISTS', cancelReturned) == 1 then return { positions, 0 } end
local now = whole(millis())
for i, rule in ipairs(rules) do
  if not matches[i] and redis.call('HDEL', cancelRules, rule.id) == 1 then
    redis.call('HSET', progress .. rule.id, 'doneAt', now)
    redis.call('PEXPIRE', progress .. rule.id, keepMs)
  end
end
return { positions, 1 }
`,
  answer(reply) {
    const [matching, isDone] = reply as [number[], number]
    return { matching, isDone: isDone === 1 }
  },
})
