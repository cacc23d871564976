#!lua flags=no-writes
-- Counts a queue's dead tasks by fingerprint. Takes one command for each fingerprint and three more for each one that is returned,
-- whatever the number of tasks.
--
-- KEYS  fingerprints
-- ARGV  prefix  of the fingerprints' sets
-- ARGV  limit   how many fingerprints to return
--
-- Returns `Array<[fingerprint: string, info: string, count: number, oldestAt: string, newestAt: string, newestId: TaskId]>`: the largest
-- counts first, and equal counts by fingerprint.
--- @type TaskId from @bullpen/contract
local kinds = {}
for _, fingerprint in ipairs(redis.call('HKEYS', fingerprints)) do
  local count = redis.call('ZCARD', prefix .. fingerprint)
  if count > 0 then
    kinds[#kinds + 1] = { fingerprint, count }
  end
end
table.sort(kinds, function(a, b)
  return a[2] > b[2] or a[2] == b[2] and a[1] < b[1]
end)
local found = {}
for i = 1, math.min(#kinds, tonumber(limit)) do
  local fingerprint, count = unpack(kinds[i])
  local set = prefix .. fingerprint
  local oldest, newest = redis.call('ZRANGE', set, 0, 0, 'WITHSCORES'), redis.call('ZRANGE', set, -1, -1, 'WITHSCORES')
  local info = redis.call('HGET', fingerprints, fingerprint)
  found[i] = { fingerprint, info, count, oldest[2], newest[2], newest[1] }
end
return found
