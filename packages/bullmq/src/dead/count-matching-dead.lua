#!lua flags=no-writes
-- Counts the dead tasks that match a filter, among a limited number of tasks. If the filter is empty, the script counts all tasks at once,
-- in O(log n).
--
-- KEYS  set         the set to search, which is that of the dead tasks or of one fingerprint
-- ARGV  base
-- ARGV  filterText  the filter as JSON
-- ARGV  earliest    time of death, or '-inf'
-- ARGV  latest      time of death, or '+inf'
-- ARGV  score       with `last`, the task after which the count begins; '' for both to begin with the oldest task
-- ARGV  last
-- ARGV  scan        how many tasks to examine
--
-- Returns `[matching: number, id: string, score: string]`: the last task that was examined, '' if no more tasks follow.
--- @include matching-dead
--- @include rank-in-set

local filter = decode_json(filterText)
if next(filter) == nil then
  return { redis.call('ZCOUNT', set, earliest, latest), '', '' }
end
local first = last == '' and redis.call('ZCOUNT', set, '-inf', '(' .. earliest) or rank_in(set, score, last)
local beyond = redis.call('ZCOUNT', set, '-inf', latest)
local page = redis.call('ZRANGE', set, first, math.min(first + scan, beyond) - 1, 'WITHSCORES')
local matching = 0
for i = 1, #page, 2 do
  if matches_dead(base, filter, page[i]) then
    matching = matching + 1
  end
end
if first + scan >= beyond then
  return { matching, '', '' }
end
return { matching, page[#page - 1], page[#page] }
