// Creates, changes or deletes a schedule, unless it has been written since it was read.
import type { WriteResult } from '@bullpen/engine/internal'
import { TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/**
 * Lua functions for a script with the keys `schedules` and `scheduleTimes`, and the arguments `name`, `expected`, `token`, `record`,
 * `wakeAt` and `notBefore`.
 *
 * - `refusal()`: returns why the schedule must not be written, 'written' if an earlier run of the same script has written it, or
 *   nil.
 * - `write_schedule()`: writes it.
 *
 * `expected` is the token of the schedule that was read ('' if there was none), and `token` the one after the write. `record` is ''
 * to delete the schedule, `wakeAt` is '' if the leader does not have to look at it again, and `notBefore` is '' if the write is not
 * bound to a time. Times are in ms since 1970.
 */
export const WRITE_SCHEDULE = `${TIME}
local function refusal()
  local stored = redis.call('HGET', schedules, name)
  local found = stored and string.match(stored, '^(%S*) ') or ''
  if found == token or (record == '' and not stored) then return 'written' end
  if found ~= expected then return 'conflict' end
  if notBefore ~= '' and millis() < tonumber(notBefore) then return 'early' end
end
local function write_schedule()
  if record == '' then
    redis.call('HDEL', schedules, name)
    redis.call('ZREM', scheduleTimes, name)
    return
  end
  redis.call('HSET', schedules, name, token .. ' ' .. record)
  if wakeAt == '' then redis.call('ZREM', scheduleTimes, name) else redis.call('ZADD', scheduleTimes, wakeAt, name) end
end
`

/**
 * - KEYS: schedules, the times at which the leader has to look at them.
 * - ARGV: see {@link WRITE_SCHEDULE}.
 *
 * Returns a {@link WriteResult}. A second call with the same arguments changes nothing and returns the same.
 */
export const writeScheduleScript = defineScript({
  name: 'write-schedule',
  kind: 'frees',
  keys: ['schedules', 'scheduleTimes'],
  args: ['name', 'expected', 'token', 'record', 'wakeAt', 'notBefore'],
  lua: `${WRITE_SCHEDULE}
local refused = refusal()
if refused then return refused end
write_schedule()
return 'written'
`,
  answer: (reply) => reply as WriteResult,
})
