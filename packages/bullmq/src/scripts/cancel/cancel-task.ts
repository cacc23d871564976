// Cancels one task: ends it if no worker is running it, and otherwise asks the worker to stop it.
import type { CancelAnswer } from '@bullpen/contract/internal'
import { STORED_REPLY } from '../../store/scripts.ts'
import { END_WITHOUT_RUN } from '../includes/ended-tasks/end-without-run.ts'
import { defineScript } from '../script.ts'

/** How long the reply to a cancellation is kept for a repeated request, in ms. */
export const CANCEL_REPLY_KEPT_MS = 60_000

export interface CancelReply {
  readonly answer: CancelAnswer
  /** The name of the task, if the script has cancelled it; otherwise ''. */
  readonly task: string
}

/**
 * - KEYS: the job, its lock, completed, failed, cancelling, the reply to this request.
 * - ARGV: the prefix of the queue's keys, the task's id, the current time (ms since 1970), '1' if a worker that runs the task can
 *   stop it, the reason and the record of `endOf`, the channel on which workers are asked, who requested the cancellation ('' if
 *   unknown), the id of this request, '1' if the leader repeats a stored request.
 *
 * Returns what the script did. If the script ended the task or stored the request, a second call with the same request changes
 * nothing and returns the same reply.
 *
 * A task with a lock is running, so the waiting list is not searched for that task.
 *
 * The leader repeats a request some time after it has read the request. If the request is no longer stored by then, because the
 * task has ended, nothing is done. The task may have been retried in the meantime.
 *
 * The message to the workers is the task's id, the time at which the task was last retried by request ('0' if never), and who
 * requested the cancellation. The time tells the workers which run of the task the message is about.
 */
export const cancelTask = defineScript({
  name: 'cancel-task',
  kind: 'frees',
  keys: ['job', 'lock', 'completed', 'failed', 'cancelling', 'cancelReply'],
  args: ['base', 'id', 'now', 'stoppable', 'reason', 'record', 'channel', 'by', 'request', 'repeats'],
  lua: `${END_WITHOUT_RUN}${STORED_REPLY}
local earlier = stored_reply(cancelReply, request)
if earlier then return earlier end
if repeats == '1' and redis.call('HEXISTS', cancelling, id) == 0 then return { 'already_ended', '' } end
local function without_request(answer)
  redis.call('HDEL', cancelling, id)
  return { answer, '' }
end
local function replied(answer, name)
  store_reply(cancelReply, request, { answer, name }, ${CANCEL_REPLY_KEPT_MS})
  return { answer, name }
end
local name = redis.call('HGET', job, 'name')
if not name and redis.call('EXISTS', job) == 0 then return without_request('not_found') end
if redis.call('ZSCORE', completed, id) or redis.call('ZSCORE', failed, id) then return without_request('already_ended') end
local ends = ends_without_run(base, 'cancelled')
local place = redis.call('EXISTS', lock) == 0 and ends.take_out(id)
if place then
  ends.finish(id, place, now, reason, record)
  ends.close()
  return replied('cancelled', name or '')
end
if stoppable ~= '1' then return { 'not_cancellable', '' } end
local is_first = redis.call('HSETNX', cancelling, id, by) == 1
local retried = string.match(redis.call('HGET', job, 'data') or '', '^{"v":%d+,"retriedAt":(%d+),') or '0'
redis.call('PUBLISH', channel, id .. ' ' .. retried .. ' ' .. by)
if is_first then return replied('cancelling', '') end
return { 'cancelling', '' }
`,
  answer(reply): CancelReply {
    const [answer, task] = reply as [CancelAnswer, string]
    return { answer, task }
  },
})
