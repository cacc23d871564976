// Counts what a light drain of a queue's fleet waits for.
import { inLanes } from '../../internals/turns/lanes.ts'
import { TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: wait, prioritized, `lanes`, the state of the lanes, active, delayed, postponed, the outbox.
 * - ARGV: the step of a delayed score (internals/status/places.ts).
 *
 * Returns the number of tasks in the first places, plus the number of delayed tasks that are due by Redis's clock, plus the
 * number of entries in the outbox, plus the number of quarantined tasks that are not due yet because no worker had a place for them.
 * Such a task is in `postponed` with the same
 * score as in `delayed`. If the scores differ, the task has left the delayed set since.
 */
export const remainingTasks = defineScript({
  name: 'count-remaining',
  kind: 'reads',
  keys: ['wait', 'prioritized', 'lanes', 'turnState', 'active', 'delayed', 'postponed', 'outbox'],
  args: ['scoreStep'],
  lua: `${TIME}
local due = (millis() + 1) * tonumber(scoreStep)
local waiting = 0
local later = redis.call('ZRANGEBYSCORE', postponed, whole(due), '+inf', 'WITHSCORES')
for i = 1, #later, 2 do
  if redis.call('ZSCORE', delayed, later[i]) == later[i + 1] then waiting = waiting + 1 end
end
return waiting + redis.call('LLEN', wait) + ${inLanes('turnState')} + redis.call('ZCARD', prioritized) + redis.call('LLEN', active)
  + redis.call('ZCOUNT', delayed, '-inf', '(' .. whole(due)) + redis.call('XLEN', outbox)
`,
  answer: (reply) => reply as number,
})
