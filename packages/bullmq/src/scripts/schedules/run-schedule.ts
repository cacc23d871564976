// Enqueues the task of a schedule's tick, and moves the schedule past the tick, both or neither.
import type { WriteResult } from '@bullpen/engine/internal'
import { PREPARE_ADDS } from '../jobs/add-all.ts'
import { defineScript } from '../script.ts'
import { WRITE_SCHEDULE } from './write-schedule.ts'

/**
 * - KEYS: schedules, the times at which the leader has to look at them, the queue's settings.
 * - ARGV: see {@link WRITE_SCHEDULE}; the prefix of the queue's keys, the name of the BullMQ script that adds the task, its keys as JSON,
 *   and then its arguments.
 *
 * Returns a {@link WriteResult}. A second call with the same arguments changes nothing and returns the same.
 *
 * A leader that dies before this script has neither enqueued the task nor moved the schedule, and the next leader does both. A leader
 * that dies after it has done both. Two leaders cannot both do it, because the first one changes the token that the second one expects.
 * If the task already exists, only the schedule is moved: Redis has then lost the schedule's newest state, but not the task.
 */
export const runScheduleScript = defineScript({
  name: 'run-schedule',
  kind: 'adds',
  keys: ['schedules', 'scheduleTimes', 'settings'],
  args: ['name', 'expected', 'token', 'record', 'wakeAt', 'notBefore', 'base', 'script', 'keys'],
  lua: `${WRITE_SCHEDULE}${PREPARE_ADDS}
local refused = refusal()
if refused then return refused end
if redis.call('HEXISTS', settings, 'drain') == 1 then return 'draining' end
local add = prepare[script](cjson.decode(keys), { unpack(ARGV, 10) })
if type(add) == 'function' then add() end
write_schedule()
return 'written'
`,
  answer: (reply) => reply as WriteResult,
})
