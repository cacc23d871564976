#!lua flags=allow-oom
-- Ends waiting tasks whose queue timeout has passed.
--
-- KEYS  expiries, wait, leader, endReply
-- ARGV  base, now
-- ARGV  limit   how many tasks to examine
-- ARGV  reason  why the tasks end, as `endOf` returns it (codec.ts)
-- ARGV  record  the attempt record, as `endOf` returns it
-- ARGV  fencing, request
--
-- Returns `[hasMore: 0 | 1, ...expired: string[]] | null`: whether more tasks may be due, and the id and the name of each task that the
-- script has ended; or null if there is a newer leader. If the script ended tasks, a second call with the same request returns the same
-- reply.
--
-- The script only removes a task from the index if the task was fetched or has ended. The worker that fetches a task checks its queue
-- timeout itself. If that worker releases the task without starting it, the task returns to the index, at the time that this script stores
-- in the field `expiresAt` (store/lua/includes/end/task-return.lua).
--- @include fence
--- @include stored-reply
--- @include leave-place
--- @include end-without-run
--- @include lock

-- This many tasks at the end of the waiting list from which workers fetch are cheap to remove. Tasks with the same queue timeout expire at
-- that end.
local NEAR = 1000
-- How many entries of the waiting list, or of lanes, one script may pass to reach tasks that are further away. 200,000 take about 2.6 ms.
local MAX_PASSED = 200000

local passed = 0

-- Returns the place in which the task has waited, or nil if it was in none.
local function expire(id, list)
  local is_near = redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', NEAR)
  local length = is_near and 0 or redis.call('LLEN', list)
  local task, place = read_waiting_task(id), take_out(id)
  if place then
    passed = passed + ((place == 'wait' or place == 'lanes') and length or 0)
    end_waiting_task(task, place, 'expired', { at = now, reason = reason, record = record })
  end
  return place
end

local earlier = stored_reply(endReply, request)
if earlier then
  return earlier
end
if is_deposed(leader, fencing) then
  return false
end
local due = redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
local reply = { #due == 2 * limit and 1 or 0 }
for i = 1, #due, 2 do
  local id, time = due[i], due[i + 1]
  local name, starts, lane, ended_at = unpack(redis.call('HMGET', base .. id, 'name', 'ats', 'lane', 'finishedOn'))
  local list = lane and lane_list(base, lane_name(lane)) or wait
  if passed > 0 and passed + redis.call('LLEN', list) > MAX_PASSED then
    reply[1] = 1
    break
  end
  redis.call('ZREM', expiries, id)
  starts = tonumber(starts or '0')
  if name and starts == 0 and not ended_at and expire(id, list) then
    reply[#reply + 1] = id
    reply[#reply + 1] = name
  elseif name and starts == 1 and is_running(base .. id) then
    redis.call('HSET', base .. id, 'expiresAt', time)
  end
end
note_drained_by_ends()
if #reply > 1 then
  store_reply(endReply, request, reply, REPLY_KEPT_MS)
end
return reply
