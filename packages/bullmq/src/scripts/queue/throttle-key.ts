// Throttles the concurrency key of a task, or extends its current throttle.
import { THROTTLE_KEY } from '../../internals/turns/key-throttle.ts'
import { nameIn } from '../../internals/turns/lanes.ts'
import { splitName } from '../../internals/turns/limiters/needs.ts'
import { TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the task.
 * - ARGV: the prefix of the queue's keys, the duration in ms.
 *
 * Returns false, without writing anything, if the task takes no turns. O(log n).
 */
export const throttleKey = defineScript({
  name: 'throttle-key',
  kind: 'frees',
  keys: ['job'],
  args: ['base', 'duration'],
  lua: `${TIME}
local call = redis.call
local lane = call('HGET', job, 'lane')
if not lane then return 0 end
${splitName(nameIn('lane'))}
if key == '' then return 0 end
local now = millis()
-- The clock is read in whole milliseconds, so one is added.
local ends_at = now + duration + 1
${THROTTLE_KEY}
return 1
`,
  answer: (reply) => reply === 1,
})
