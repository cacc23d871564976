#!lua flags=allow-oom
-- Cancels one task: ends it if no worker is running it, and otherwise asks the worker to stop it.
--
-- KEYS  job, completed, failed, waitingChildren, cancelling, cancelReply
-- ARGV  base, id, now
-- ARGV  stoppable  '1' if a worker that runs the task can stop it
-- ARGV  reason     why the task ends, as `endOf` returns it (codec.ts)
-- ARGV  record     the attempt record, as `endOf` returns it
-- ARGV  channel    the channel on which workers are asked
-- ARGV  by         who requested the cancellation; '' if unknown
-- ARGV  request
-- ARGV  repeats    '1' if the leader repeats a stored request
--
-- Returns `[answer: CancelAnswer, task: string]`: what the script did, and the name of the task if the script has ended it, otherwise ''.
-- If the script ended the task or stored the request, a second call with the same request changes nothing and returns the same reply.
--
-- A task with a lock is running, and a task that waits for its children can't be ended, so the script does not search the waiting list for
-- either of them.
--
-- The leader repeats a request some time after it has read the request. If the request is no longer stored by then, because the task has
-- ended, the script does nothing: the task may have been retried in the meantime.
--
-- The message to the workers is the task's id, the time at which the task was last retried by request ('0' if never), and who requested the
-- cancellation. The time tells the workers which run of the task the message is about.
--- @type CancelAnswer from @bullpen/contract/internal
--- @include stored-reply
--- @include leave-place
--- @include end-without-run
--- @include lock

local CANCEL_REPLY_KEPT_MS = 60000

local function without_request(answer)
  redis.call('HDEL', cancelling, id)
  return { answer, '' }
end

local function replied(answer, name)
  store_reply(cancelReply, request, { answer, name }, CANCEL_REPLY_KEPT_MS)
  return { answer, name }
end

local function end_waiting()
  if is_running(job) or redis.call('ZSCORE', waitingChildren, id) then
    return false
  end
  local task = read_waiting_task(id)
  local place = take_out(id)
  if not place then
    return false
  end
  end_waiting_task(task, place, 'cancelled', { at = now, reason = reason, record = record })
  note_drained_by_ends()
  return true
end

local earlier = stored_reply(cancelReply, request)
if earlier then
  return earlier
end
if repeats == '1' and redis.call('HEXISTS', cancelling, id) == 0 then
  return { 'already_ended', '' }
end
local name, data = unpack(redis.call('HMGET', job, 'name', 'data'))
if not name and redis.call('EXISTS', job) == 0 then
  return without_request('not_found')
end
if redis.call('ZSCORE', completed, id) or redis.call('ZSCORE', failed, id) then
  return without_request('already_ended')
end
if end_waiting() then
  return replied('cancelled', name or '')
end
if stoppable ~= '1' then
  return { 'not_cancellable', '' }
end
local is_first = redis.call('HSETNX', cancelling, id, by) == 1
local retried = string.match(data or '', '^{"v":%d+,"retriedAt":(%d+),') or '0'
redis.call('PUBLISH', channel, id .. ' ' .. retried .. ' ' .. by)
return is_first and replied('cancelling', '') or { 'cancelling', '' }
