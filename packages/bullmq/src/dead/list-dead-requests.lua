#!lua flags=no-writes
-- Lists a queue's requests to retry or delete dead tasks by filter, without those whose progress is no longer kept.
--
-- KEYS  deadRequestIds
-- ARGV  prefix  of the requests' progress
-- ARGV  limit   how many requests to list
--
-- Returns `Array<[request: string, changed: string, doneAt: string, stoppedBy: string]>`: the newest requests first, as JSON, with ''
-- for a missing time or name.
local found = {}
for _, id in ipairs(redis.call('LRANGE', deadRequestIds, 0, limit - 1)) do
  local fields = redis.call('HMGET', prefix .. id, 'request', 'changed', 'doneAt', 'stoppedBy')
  if fields[1] then
    found[#found + 1] = { fields[1], fields[2] or '0', fields[3] or '', fields[4] or '' }
  end
end
return found
