-- Pauses and resumes a queue, whose keys have the prefix `base`.
--
-- pause_queue()     lets no further task start
-- take_back_jobs()  moves the jobs that older versions of BullMQ add to the list `paused` of a paused queue to `wait`, where they are the
--                   first to start. Returns whether some are left, because one call moves no more than Lua can pass to a function
-- resume_queue()    lets tasks start again
-- wake_workers()    lets idle workers wake if a task waits or, if none does, when the next one is due
--- @include idle-queue

local MOVED_AT_ONCE = 7000

local function pause_queue()
  redis.call('HSET', base .. 'meta', 'paused', '1')
  redis.call('DEL', base .. 'marker')
  redis.call('XADD', base .. 'events', '*', 'event', 'paused')
end

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

local function wake_workers()
  if redis.call('EXISTS', base .. 'wait', base .. 'prioritized', base .. 'lanes') > 0 then
    redis.call('ZADD', base .. 'marker', '0', '0')
  else
    wake_when_due()
  end
end

local function resume_queue()
  redis.call('HDEL', base .. 'meta', 'paused')
  redis.call('XADD', base .. 'events', '*', 'event', 'resumed')
end
