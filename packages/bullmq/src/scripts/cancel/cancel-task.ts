// Cancels one task: ends the task if no worker has it, and otherwise asks its worker to stop it.
import type { CancelAnswer } from '@bullpen/contract/internal'
import { END_WITHOUT_RUN } from '../includes/end-without-run.ts'
import { defineScript } from '../script.ts'

/**
 * KEYS: the job, its lock, completed, failed, cancelling. ARGV: the prefix of the queue's keys, the task's id, now in ms since
 * 1970, '1' if a worker that runs the task can stop it, the reason and the record of `endOf`, the channel on which workers are
 * asked, and who requested the cancellation ('' if unknown). Returns what the script did. Idempotent.
 *
 * A task with a lock is running, so the waiting list is not searched for that task.
 */
export const cancelTask = defineScript({
  name: 'cancel-task',
  kind: 'frees',
  keys: ['job', 'lock', 'completed', 'failed', 'cancelling'],
  args: ['base', 'id', 'now', 'stoppable', 'reason', 'record', 'channel', 'by'],
  lua: `${END_WITHOUT_RUN}
local function without_request(answer)
  redis.call('HDEL', cancelling, id)
  return answer
end
if redis.call('EXISTS', job) == 0 then return without_request('not_found') end
if redis.call('ZSCORE', completed, id) or redis.call('ZSCORE', failed, id) then return without_request('already_ended') end
local ends = ends_without_run(base, 'cancelled')
local place = redis.call('EXISTS', lock) == 0 and ends.take_out(id)
if place then
  ends.finish(id, place, now, reason, record)
  ends.close()
  return 'cancelled'
end
if stoppable ~= '1' then return 'not_cancellable' end
redis.call('HSETNX', cancelling, id, by)
redis.call('PUBLISH', channel, id .. ' ' .. by)
return 'cancelling'
`,
  answer: (reply) => reply as CancelAnswer,
})
