// Counts the tasks that a light drain of a queue's fleet waits for.
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: wait, prioritized, active, delayed.
 * - ARGV: the step of a delayed score (internals/status/places.ts).
 *
 * Returns the number of tasks in the first three places, plus the number of delayed tasks that are due by Redis's clock.
 */
export const remainingTasks = defineScript({
  name: 'count-remaining',
  kind: 'reads',
  keys: ['wait', 'prioritized', 'active', 'delayed'],
  args: ['scoreStep'],
  lua: `${TIME}
local due = (millis() + 1) * tonumber(scoreStep)
return redis.call('LLEN', wait) + redis.call('ZCARD', prioritized) + redis.call('LLEN', active)
  + redis.call('ZCOUNT', delayed, '-inf', '(' .. whole(due))
`,
  answer: (reply) => reply as number,
})
