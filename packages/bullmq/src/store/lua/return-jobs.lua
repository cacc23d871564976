#!lua flags=allow-oom
-- Lets several jobs that have ended run again, or several delayed ones start, in place of BullMQ's `moveJobsToWait`. As there, they go
-- to `wait` even if they have a priority. A task whose compensations were released is left out, because BullMQ's own retry cannot say
-- that they are intended to stay.
--
-- KEYS  set     the jobs of that state
-- ARGV  base
-- ARGV  state   its name: `completed`, `failed` or `delayed`
-- ARGV  count   how many jobs are moved at most
-- ARGV  latest  the highest score of a job that is moved
--
-- Returns `number`: 1 if that many jobs were moved, so that there may be more of them, and otherwise 0.
--- @include return-ended
--- @include leave-place

-- How many jobs are read, and written, at once.
local PAGE = 1000

local function start_delayed(task, keeps_turn)
  leave_delayed(base, task.id)
  if keeps_turn then
    redis.call('HDEL', base .. task.id, 'waits')
  end
  place_waiting(task.id, task.lane, 0, keeps_turn)
  add_move_event('waiting', task.id, 'prev', state)
end

-- Returns whether the job has left the set.
local function move(id)
  local name, compensated, lane, deaths, parent, keeps_turn =
    unpack(redis.call('HMGET', base .. id, 'name', 'compensated', 'lane', 'deaths', 'parentKey', 'waits'))
  local task = { id = id, lane = lane, deaths = deaths, parent = parent }
  if state == 'delayed' then
    start_delayed(task, keeps_turn)
    return true
  end
  if compensated then
    return false
  end
  leave_ended(id, state)
  if name then
    return_ended(task, state, { state == 'completed' and 'returnvalue' or 'failedReason' }, false)
  end
  return true
end

local moved, kept, most = 0, 0, tonumber(count)
while moved < most do
  local ids = redis.call('ZRANGEBYSCORE', set, 0, latest, 'LIMIT', kept, math.min(most - moved, PAGE))
  if #ids == 0 then
    break
  end
  for _, id in ipairs(ids) do
    if move(id) then
      moved = moved + 1
    else
      kept = kept + 1
    end
  end
  write_waiting()
end
return moved > 0 and moved == most and 1 or 0
