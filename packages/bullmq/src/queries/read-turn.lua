#!lua flags=no-writes
-- Reads what a waiting task in a lane waits for, and how many tasks of the same lane start before it. If the task is further behind in a
-- long lane, it is not searched for, so a task that has left such a lane since may be reported as waiting in it. Takes Redis O(log n) for a
-- task with a priority. Otherwise, the time grows with the number of tasks that are counted.
--
-- KEYS  job
-- ARGV  base, id
-- ARGV  max  how many tasks to count at most
--
-- Returns `[ahead: number, kind: 'turn' | 'concurrency' | 'rate' | 'limiter', limiter?: string, until?: string | null] | null`: null if the
-- task is not in a lane. `limiter` is '' for a rate.
--- @include lane
--- @include ticket-of

local field = redis.call('HGET', job, 'lane')
if not field then
  return nil
end
local name = lane_name(field)

local function waits_for(ahead)
  local time = redis.call('ZSCORE', base .. 'lane-times', name)
  if time then
    return { ahead, 'rate', '', time }
  end
  if not redis.call('ZSCORE', base .. 'blocked-lanes', name) then
    return { ahead, 'turn' }
  end
  local key, needs = split_lane(name)
  local limiter = needs and ticket_of(base, name, key, needs)
  if limiter and limiter ~= 'key' then
    return { ahead, 'limiter', limiter, redis.call('ZSCORE', base .. 'lane-times', '\30' .. limiter) }
  end
  return { ahead, 'concurrency' }
end

local list, most = lane_list(base, name), tonumber(max)
local length = redis.call('LLEN', list)
local rank = redis.call('ZRANK', lane_priorities(base, name), id)
if rank then
  return waits_for(math.min(most, length + rank))
end
local index = redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', max)
if index then
  return waits_for(length - index - 1)
end
if length > most then
  return waits_for(most)
end
