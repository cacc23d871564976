// Begins one of the bulk canceller's passes through a queue.

import { FENCE, TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/** Each script of a pass compares up to 200 tasks with each of the rules. */
const RULES_PER_PASS = 50

/**
 * - KEYS: the queue's fencing number, the rules, the tasks that have returned from `active` during a pass, the current pass.
 * - ARGV: the leader's number, an id of the new pass.
 *
 * Returns Redis's time in ms and up to {@link RULES_PER_PASS} rules as JSON, or undefined if there are no rules or if there is a
 * newer leader. If there are more rules, each pass selects a random subset.
 */
export const beginPass = defineScript({
  name: 'begin-pass',
  kind: 'frees',
  keys: ['leader', 'cancelRules', 'cancelReturned', 'cancelPass'],
  args: ['fencing', 'pass'],
  lua: `${TIME}${FENCE}
if is_deposed(leader, fencing) then return false end
local found = redis.call('HRANDFIELD', cancelRules, ${RULES_PER_PASS}, 'WITHVALUES')
if #found == 0 then return false end
local rules = {}
for i = 2, #found, 2 do rules[#rules + 1] = found[i] end
redis.call('DEL', cancelReturned, cancelPass)
redis.call('HSET', cancelPass, 'id', pass)
return { millis(), rules }
`,
  answer(reply) {
    if (reply === null) return undefined
    const [now, rules] = reply as [number, string[]]
    return { now, rules }
  },
})
