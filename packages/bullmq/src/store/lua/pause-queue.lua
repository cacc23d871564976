#!lua flags=allow-oom
-- Pauses or resumes a queue, in place of BullMQ's `pause`. Older versions of BullMQ add the jobs of a paused queue to the list `paused`.
-- When the queue resumes, these start first.
--
-- KEYS[1]  meta
-- ARGV[1]  base    the prefix of the queue's keys
-- ARGV[2]  paused  '1' to pause the queue, '' to resume it
--
-- Returns `number`: 0; or 1 if there are more of these jobs than one run moves, and the queue is still paused.
local meta = KEYS[1]
local base, paused = ARGV[1], ARGV[2]
--- @include idle-queue

-- How many jobs one run moves. Redis's `unpack` ends near 8,000 values.
local MOVED_AT_ONCE = 7000

-- Returns whether some of the jobs are left.
local function take_back_jobs()
  local from, to = base .. 'paused', base .. 'wait'
  if redis.call('EXISTS', from) == 0 or redis.call('RENAMENX', from, to) == 1 then
    return false
  end
  local ids = redis.call('LRANGE', from, 0, MOVED_AT_ONCE - 1)
  redis.call('RPUSH', to, unpack(ids))
  redis.call('LTRIM', from, #ids, -1)
  return redis.call('EXISTS', from) == 1
end

if paused == '1' then
  redis.call('HSET', meta, 'paused', '1')
  redis.call('DEL', base .. 'marker')
  redis.call('XADD', base .. 'events', '*', 'event', 'paused')
  return 0
end
if take_back_jobs() then
  return 1
end
redis.call('HDEL', meta, 'paused')
if redis.call('EXISTS', base .. 'wait', base .. 'prioritized', base .. 'lanes') > 0 then
  redis.call('ZADD', base .. 'marker', '0', '0')
else
  wake_when_due()
end
redis.call('XADD', base .. 'events', '*', 'event', 'resumed')
return 0
