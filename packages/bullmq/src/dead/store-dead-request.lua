#!lua flags=allow-oom
-- Stores a request to retry or delete dead tasks by filter. A second call with the same id stores nothing and returns the same request,
-- even after the request is done.
--
-- KEYS  deadRequests
-- KEYS  progress  the new request's progress
-- KEYS  deadRequestIds
-- ARGV  id        the request's id
-- ARGV  request   the request as JSON, without its closing brace
-- ARGV  limit     how many requests the queue may then have
--
-- Returns `string | null`: the stored request, whose time is Redis's, or null if the queue has too many requests.
--- @include time

-- How many requests are listed at most. A listed request takes about 30 bytes, in addition to its progress.
local LISTED = 1000

local stored = redis.call('HGET', progress, 'request')
if stored then
  return stored
end
if redis.call('HLEN', deadRequests) >= tonumber(limit) then
  return false
end
stored = request .. ',"at":' .. whole(millis()) .. '}'
redis.call('HSET', progress, 'request', stored)
redis.call('HSET', deadRequests, id, stored)
redis.call('LPUSH', deadRequestIds, id)
redis.call('LTRIM', deadRequestIds, 0, LISTED - 1)
return stored
