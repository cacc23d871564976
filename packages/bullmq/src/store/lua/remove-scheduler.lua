#!lua flags=allow-oom
-- Removes a job scheduler, and its next job if that is delayed, in place of BullMQ's `removeJobScheduler`.
--
-- KEYS  schedulers  BullMQ's set `repeat`: the job schedulers, by the time of their next jobs
-- ARGV  base
-- ARGV  scheduler   the scheduler's id
--
-- Returns `number`: 0, or 1 if there is no such scheduler.
--- @include queue-meta
--- @include job-removal

local next_at = redis.call('ZSCORE', schedulers, scheduler)
if not next_at then
  return 1
end
local id = 'repeat:' .. scheduler .. ':' .. next_at
if leave_set(base, 'delayed', id) then
  delete_in_bulk(id)
  add_bullmq_event('removed', id, 'prev', 'delayed')
end
redis.call('ZREM', schedulers, scheduler)
redis.call('DEL', schedulers .. ':' .. scheduler)
return 0
