#!lua flags=allow-oom
-- Adds the next job of a job scheduler when its last one starts, in place of BullMQ's `updateJobScheduler`.
--
-- KEYS  schedulers  BullMQ's set `repeat` (includes/bullmq/scheduler.lua)
-- ARGV  base
-- ARGV  scheduler   the scheduler's id
-- ARGV  time        for when the next job is planned, in ms since 1970, or '' for a scheduler with an interval
-- ARGV  options     the options of the next job, as JSON
-- ARGV  producer    the id of the job that starts
--
-- Returns `string | null`: the id of the next job; or null if none is added, because the scheduler is gone, has another last job, or has
-- already added the next one.
--- @include time
--- @include scheduler

local last = tonumber(redis.call('ZSCORE', schedulers, scheduler))
if not last or producer ~= planned_id(scheduler, last) then
  return false
end
local hash, now, given = schedulers .. ':' .. scheduler, millis(), cjson.decode(options)
local name, data, every, offset = unpack(redis.call('HMGET', hash, 'name', 'data', 'every', 'offset'))
local of_job, planned = given['repeat'] or {}, tonumber(time)
every = tonumber(every or of_job.every)
if every then
  planned = next_time(last, every, now, tonumber(offset or of_job.offset or 0))
end
local id = planned_id(scheduler, planned)
if redis.call('EXISTS', base .. id) == 1 then
  add_event_of(base, 'duplicated', id)
  return false
end
redis.call('ZADD', schedulers, whole(planned), scheduler)
redis.call('HINCRBY', hash, 'ic', '1')
add_planned(scheduler, planned, now, { name = name, data = data or '{}', options = given })
return id
