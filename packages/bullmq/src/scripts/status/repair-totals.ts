// Corrects a queue's totals, so that every accepted task is accounted for again. This is the last step of an index repair.
import { inLanes } from '../../internals/turns/lanes.ts'
import { TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: `totals`, and every structure that holds tasks.
 * - ARGV: none.
 *
 * Tasks that are counted as accepted but are not in any structure were removed without being counted, and are added to `removed`.
 * Tasks that are in a structure without being counted are added to `accepted`. Totals never decrease. Returns the number of tasks
 * by which a total was corrected, which the script also adds to `drift`. Also stores the current time, by Redis's clock, as the
 * time of the last comparison. O(1), because the number of tasks in each status is the size of a structure.
 */
export const repairTotals = defineScript({
  name: 'repair-totals',
  kind: 'frees',
  keys: [
    'totals',
    'wait',
    'active',
    'prioritized',
    'lanes',
    'turnState',
    'waitingChildren',
    'delayed',
    'completed',
    'failed',
  ],
  args: [],
  lua: `${TIME}
redis.call('HSET', totals, 'comparedAt', whole(millis()))
local tasks = redis.call('LLEN', wait) + redis.call('LLEN', active) + ${inLanes('turnState')}
for _, set in ipairs({ prioritized, waitingChildren, delayed, completed, failed }) do tasks = tasks + redis.call('ZCARD', set) end
local counted = redis.call('HMGET', totals, 'accepted', 'removed')
local unaccounted = tonumber(counted[1] or '0') - tonumber(counted[2] or '0') - tasks
if unaccounted == 0 then return 0 end
local correction = math.abs(unaccounted)
redis.call('HINCRBY', totals, unaccounted > 0 and 'removed' or 'accepted', correction)
redis.call('HINCRBY', totals, 'drift', correction)
return correction
`,
  answer: Number,
})
