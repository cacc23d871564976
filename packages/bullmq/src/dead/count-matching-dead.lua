#!lua flags=no-writes
-- Counts the dead tasks that match a filter, among a limited number of tasks. If the filter is empty, the script counts all tasks at once,
-- in O(log n).
--
-- KEYS[1]  set         the set to search, which is that of the dead tasks or of one fingerprint
-- ARGV[1]  base        the prefix of the queue's keys
-- ARGV[2]  filterText  the filter as JSON
-- ARGV[3]  earliest    time of death, or '-inf'
-- ARGV[4]  latest      time of death, or '+inf'
-- ARGV[5]  score       with `last`, the task after which the count begins; '' for both to begin with the oldest task
-- ARGV[6]  last
-- ARGV[7]  scan        how many tasks to examine
--
-- Returns `[matching: number, id: string, score: string]`: the last task that was examined, '' if no more tasks follow.
local set = KEYS[1]
local base, filterText, earliest, latest = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local score, last, scan = ARGV[5], ARGV[6], ARGV[7]
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
