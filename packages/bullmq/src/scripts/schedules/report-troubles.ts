// Stores which troubles of a schedule the leader has reported.

import { FENCE } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the queue's fencing number, the reported troubles by schedule.
 * - ARGV: the leader's fencing number, the schedule's name, its troubles as JSON ('' if it has none).
 *
 * Does nothing if a newer leader has worked on the queue.
 */
export const reportTroublesScript = defineScript({
  name: 'report-troubles',
  kind: 'frees',
  keys: ['leader', 'scheduleTroubles'],
  args: ['fencing', 'name', 'troubles'],
  lua: `${FENCE}
if is_deposed(leader, fencing) then return end
if troubles == '' then redis.call('HDEL', scheduleTroubles, name) else redis.call('HSET', scheduleTroubles, name, troubles) end
`,
})
