#!lua flags=allow-oom
-- Stores a request to retry or delete dead tasks by filter. A second call with the same id stores nothing and returns the same request,
-- even after the request is done.
--
-- KEYS[1]  deadRequests    the requests that are not done
-- KEYS[2]  progress        the new request's progress
-- KEYS[3]  deadRequestIds  the newest requests
-- ARGV[1]  id              the request's id
-- ARGV[2]  request         the request as JSON, without its closing brace
-- ARGV[3]  limit           how many requests the queue may then have
--
-- Returns `string | null`: the stored request, whose time is Redis's, or null if the queue has too many requests.
local deadRequests, progress, deadRequestIds = KEYS[1], KEYS[2], KEYS[3]
local id, request, limit = ARGV[1], ARGV[2], ARGV[3]
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
