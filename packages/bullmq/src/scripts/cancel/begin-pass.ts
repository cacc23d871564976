// Begins a pass of the bulk canceller through a queue.
import { FENCE } from '../includes/fence.ts'
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/**
 * KEYS: the queue's fencing number, the rules, the tasks that have returned from `active` during a pass. ARGV: the leader's number.
 * Answers Redis's time in ms and the rules as JSON, or undefined if there are no rules or if there is a newer leader.
 */
export const beginPass = defineScript({
  name: 'begin-pass',
  kind: 'frees',
  keys: ['leader', 'cancelRules', 'cancelReturned'],
  args: ['fencing'],
  lua: `${TIME}${FENCE}
if is_deposed(leader, fencing) then return false end
local rules = redis.call('HVALS', cancelRules)
if #rules == 0 then return false end
redis.call('DEL', cancelReturned)
return { millis(), rules }
`,
  answer(reply) {
    if (reply === null) return undefined
    const [now, rules] = reply as [number, string[]]
    return { now, rules }
  },
})
