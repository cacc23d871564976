#!lua flags=allow-oom
-- Lets an active job wait for its children, in place of BullMQ's `moveToWaitingChildren`. Meanwhile, it holds no place of its lane.
--
-- KEYS  job
-- ARGV  base, id
-- ARGV  token  the token of its lock, or '0' if it has none
-- ARGV  child  the key of the child that it waits for, or '' for any
--
-- Returns `number`: 0; 1 if that child has ended; or BullMQ's code: -1 if the job does not exist, -2 if its lock is gone, -3 if it is not
-- active, -6 if another worker has the lock, and -9 if one of its children has failed. Unless it is 0, nothing was written.
--- @include time
--- @include give-back
--- @include lock
--- @include unmark

local function has_child()
  local dependencies = job .. ':dependencies'
  if child == '' then
    return redis.call('EXISTS', dependencies) == 1
  end
  return redis.call('SISMEMBER', dependencies, child) == 1
end

if redis.call('EXISTS', job) == 0 then
  return -1
end
if redis.call('EXISTS', job .. ':unsuccessful') == 1 then
  return -9
end
if not has_child() then
  return 1
end
local owner = token ~= '0' and owner_of(redis.call('HGET', job, 'lock'))
if token ~= '0' and owner ~= token then
  return owner and -6 or -2
end
if redis.call('LREM', base .. 'active', '-1', id) == 0 then
  return -3
end
redis.call('HSET', job, 'lock', '')
if token ~= '0' then
  unmark(id)
end
local lane = redis.call('HGET', job, 'lane')
if lane then
  give_back(lane)
end
redis.call('ZADD', base .. 'waiting-children', whole(millis()), id)
redis.call('XADD', base .. 'events', '*', 'event', 'waiting-children', 'jobId', id, 'prev', 'active')
return 0
