// Enqueues the task of a schedule's tick, and moves the schedule past the tick, in one atomic step.
import type { WriteResult } from '@bullpen/engine/internal'
import { SCHEDULE_WRITE } from '../../store/scripts.ts'
import { PREPARE_ADDS } from '../jobs/add-all.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: schedules, the times at which the leader has to look at them, the queue's settings.
 * - ARGV: see store/lua/includes/schedule-write.lua; the prefix of the queue's keys, the name of the BullMQ script that adds the task, its
 * keys as JSON, and then its arguments.
 *
 * Returns a {@link WriteResult}. A second call with the same arguments changes nothing and returns the same.
 *
 * If a leader dies before the script runs, the next leader enqueues the task and moves the schedule. If a leader dies after the
 * script has run, both are done. Two leaders cannot both handle the tick, because the first one changes the token that the second
 * one expects. If Redis has lost the schedule's newest state but not the task, the script only moves the schedule.
 */
export const runScheduleScript = defineScript({
  name: 'run-schedule',
  kind: 'adds',
  keys: ['schedules', 'scheduleTimes', 'settings'],
  args: ['name', 'expected', 'token', 'record', 'wakeAt', 'notBefore', 'base', 'script', 'keys'],
  lua: `${SCHEDULE_WRITE}${PREPARE_ADDS}
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
