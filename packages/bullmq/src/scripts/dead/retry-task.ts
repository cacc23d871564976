// Retries one dead task, or notes that a task was enqueued in another queue instead.
import type { DeadTaskAnswer } from '@bullpen/engine/internal'
import { TIME } from '../../store/scripts.ts'
import { RETRY_DEAD } from '../includes/ended-tasks/retry-dead.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the job, the dead tasks.
 * - ARGV: the prefix of the queue's keys, the task's id, the id of this request, who retries the task, the string to store in
 *   place of the task's data ('' to keep it), the task that was enqueued in another queue ('' to retry the task itself), '1' to
 *   retry the task although its compensations were released.
 *
 * Returns what the script did. A second call with the same request changes nothing and returns `done` again, unless the task has
 * been retried by ten other requests in the meantime.
 */
export const retryTask = defineScript({
  name: 'retry-task',
  kind: 'frees',
  keys: ['job', 'dead'],
  args: ['base', 'id', 'request', 'by', 'data', 'copy', 'afterCompensation'],
  lua: `${RETRY_DEAD}${TIME}
local name, stored = unpack(redis.call('HMGET', job, 'name', 'retries'))
if not name then return 'not_found' end
local retries = stored and decode_json(stored) or {}
for _, each in ipairs(retries) do
  if each.request == request then return 'done' end
end
if not redis.call('ZSCORE', dead, id) then return 'not_dead' end
if afterCompensation ~= '1' and redis.call('HEXISTS', job, 'compensated') == 1 then return 'compensated' end
local now = millis()
if copy ~= '' then
  add_retry(retries, { at = now, by = by, request = request, copy = copy })
  redis.call('HSET', job, 'retries', cjson.encode(retries))
  return 'done'
end
retries_dead(base)(id, retries, { at = now, by = by, request = request }, whole(now), data)
return 'done'
`,
  answer: (reply) => reply as DeadTaskAnswer,
})
