#!lua flags=no-writes
-- Finds the concurrency keys with the longest lanes among some of a queue's lanes. Takes two commands for each lane.
--
-- KEYS  lanes
-- ARGV  base
-- ARGV  after      the number of the lane after which to begin, '' to begin with the first one
-- ARGV  scan       how many lanes to examine
-- ARGV  fromCount  the number of tasks and the key of the last lane of the previous page, or ''
-- ARGV  fromKey
-- ARGV  lastCount  the same of the last lane that has a place on this page, or ''
-- ARGV  lastKey
--
-- Returns `[keys: Array<[key: string, count: number]>, last: string]`: the lanes between these two in the order of a listing, not sorted,
-- and the number of the last lane that was examined, '' if no more lanes follow. In a listing, the longest lane comes first, and lanes of
-- the same length are in the descending order of their keys. A key whose tasks have different needs has several lanes, so it may occur
-- several times.
--- @include is-after
--- @include lane-tasks

local function precedes(count, key, other, other_key)
  if count ~= other then
    return count > other
  end
  return is_after(key, other_key)
end

local from_count, last_count = tonumber(fromCount), tonumber(lastCount)
local first = after == '' and '-inf' or '(' .. after
local page = redis.call('ZRANGEBYSCORE', lanes, first, '+inf', 'WITHSCORES', 'LIMIT', 0, scan)
local found = {}
for i = 1, #page, 2 do
  local key, count = split_lane(page[i]), lane_length(base, page[i])
  local is_behind = key ~= '' and (not from_count or precedes(from_count, fromKey, count, key))
  if is_behind and (not last_count or precedes(count, key, last_count, lastKey)) then
    found[#found + 1] = { key, count }
  end
end
return { found, #page == 2 * scan and page[#page] or '' }
