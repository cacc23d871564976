#!lua flags=no-writes
-- Reads one page of a sorted set, beginning after a task that may have left the set in the meantime. The page begins after the place that
-- the given task has in the set's order, whether or not the task is still there. The page therefore contains exactly the tasks that follow,
-- whatever has been added to or removed from the set in the meantime.
--
-- KEYS  set
-- ARGV  score     with `last`, the task after which the page begins; '' for both to begin at the start
-- ARGV  last
-- ARGV  limit     how many tasks to read
-- ARGV  descends  '1' to read the set from its highest score
--
-- Returns `Array<[id: string, score: string]>`: that many tasks, or fewer at the end of the set.
--- @include rank-in-set

local first = last == '' and 0 or rank_in(set, score, last)
if descends == '1' and last ~= '' then
  -- The tasks before the position remain, and the task at the position has been read, if it is still there.
  local at = redis.call('ZSCORE', set, last)
  if at and tonumber(at) == tonumber(score) then
    first = first - 1
  end
  first = redis.call('ZCARD', set) - first
end
local command = descends == '1' and 'ZREVRANGE' or 'ZRANGE'
local page = redis.call(command, set, first, first + limit - 1, 'WITHSCORES')
local found = {}
for i = 1, #page, 2 do
  found[#found + 1] = { page[i], page[i + 1] }
end
return found
