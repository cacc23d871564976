#!lua flags=allow-oom
-- Stops a request to retry or delete dead tasks by filter. The leader changes each page of tasks in one script, which first looks for the
-- request, so no task is changed after this script has run. A second call changes nothing.
--
-- KEYS  deadRequests
-- KEYS  progress  the request's progress
-- ARGV  id
-- ARGV  by        who stops it
-- ARGV  keepMs    how long its progress is then kept
--
-- Returns `[request: string, changed: string, doneAt: string, stoppedBy: string] | null`: null if the request is unknown.
--- @include time

local request, changed, doneAt, stoppedBy =
  unpack(redis.call('HMGET', progress, 'request', 'changed', 'doneAt', 'stoppedBy'))
if not request then
  return false
end
if not doneAt then
  redis.call('HDEL', deadRequests, id)
  doneAt, stoppedBy = whole(millis()), by
  redis.call('HSET', progress, 'doneAt', doneAt, 'stoppedBy', by)
  redis.call('PEXPIRE', progress, keepMs)
end
return { request, changed or '0', doneAt, stoppedBy or '' }
