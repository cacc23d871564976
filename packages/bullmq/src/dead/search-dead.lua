#!lua flags=no-writes
-- Finds the dead tasks that match a filter, newest first, among a limited number of tasks. A position is a place in the set's order, so
-- tasks that die or are retried between two pages do not move it. Examining a task takes Redis about 2 µs.
--
-- KEYS  set         the set to search, which is that of the dead tasks or of one fingerprint
-- ARGV  base
-- ARGV  filterText  the filter as JSON
-- ARGV  earliest    time of death, or '-inf'
-- ARGV  latest      time of death, or '+inf'
-- ARGV  score       with `last`, the task after which the page begins; '' for both to begin with the newest task
-- ARGV  last
-- ARGV  limit       how many tasks to find
-- ARGV  scan        how many tasks to examine
--
-- Returns `[ids: TaskId[], id: string, score: string]`: the tasks, and the last one that was examined, '' if no more tasks follow.
--- @type TaskId from @bullpen/contract
--- @include matching-dead
--- @include rank-in-set

-- How many tasks are read from the set at a time.
local READ_AT_ONCE = 100

local filter, most, scanned = decode_json(filterText), tonumber(limit), tonumber(scan)
local oldest = redis.call('ZCOUNT', set, '-inf', '(' .. earliest)
local rank = redis.call('ZCOUNT', set, '-inf', latest)
if last ~= '' then
  local after = rank_in(set, score, last)
  -- The position itself has been examined, if it is still there.
  if redis.call('ZSCORE', set, last) == score then
    after = after - 1
  end
  rank = math.min(rank, after)
end
local found, examined, at_score, at_id = {}, 0, score, last
while rank > oldest and #found < most and examined < scanned do
  local page = redis.call('ZRANGE', set, math.max(oldest, rank - READ_AT_ONCE), rank - 1, 'WITHSCORES')
  for i = #page - 1, 1, -2 do
    if #found == most or examined == scanned then
      break
    end
    at_id, at_score = page[i], page[i + 1]
    examined, rank = examined + 1, rank - 1
    if matches_dead(base, filter, at_id) then
      found[#found + 1] = at_id
    end
  end
end
return { found, rank > oldest and at_id or '', at_score }
