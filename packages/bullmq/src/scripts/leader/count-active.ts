// Counts the active tasks of each concurrency key, and what they hold of each limiter, again, in case another tool or a lost
// task has made the counts wrong.
import { COUNT_ACTIVE } from '../../internals/turns/key-concurrency.ts'
import { FENCE, TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: leader, totals.
 * - ARGV: the leader's fencing number, the prefix of the queue's keys.
 *
 * Returns how many counts and blocked lanes were wrong, and adds this number to `drift` in the queue's totals. Returns 0, without
 * writing anything, if there is a newer leader. About 1 µs for each active task.
 */
export const countActiveScript = defineScript({
  name: 'count-active',
  kind: 'frees',
  keys: ['leader', 'totals'],
  args: ['fencing', 'base'],
  lua: `${TIME}${FENCE}${COUNT_ACTIVE}
if is_deposed(leader, fencing) then return 0 end
redis.call('HSET', totals, 'countedAt', whole(millis()))
local wrong = count_active(base)
if wrong > 0 then redis.call('HINCRBY', totals, 'drift', wrong) end
return wrong
`,
  answer: Number,
})
