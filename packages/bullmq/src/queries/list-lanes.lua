#!lua flags=no-writes
-- Reads one page of the tasks that wait in the lanes of a queue, one lane after the other. Within a lane, the tasks are in the order in
-- which they start. If the task before the page has left its lane, the page begins as in list-page.lua and sorted-set-page.lua. Takes two
-- commands for each lane.
--
-- KEYS  lanes
-- ARGV  base
-- ARGV  after   the number of the lane in which the page begins, '' to begin with the first one
-- ARGV  last    the task after which the page begins, or ''
-- ARGV  score   its score, '' if it has no priority
-- ARGV  passed  otherwise, how many tasks there were from the right end of the lane's list up to and including it
-- ARGV  limit   how many tasks to read
--
-- Returns `[ids: string[], lane: string, last: string, score: string, passed: string]`: that many tasks, or fewer if there are no more, and
-- the position of the last one in the form of the arguments, with '' for each part that is missing.
--- @include lane
--- @include passed-in-list
--- @include rank-in-set

local most = tonumber(limit)
local found, at = {}, { '', '', '', '' }

local function read_list(number, name, from)
  local list = lane_list(base, name)
  local index = passed_in_list(list, from, passed)
  local ids = redis.call('LRANGE', list, -index - (most - #found), -index - 1)
  for i = #ids, 1, -1 do
    found[#found + 1] = ids[i]
    index = index + 1
    at = { number, ids[i], '', tostring(index) }
  end
end

local function read_priorities(number, name, from)
  local set = lane_priorities(base, name)
  local first = from == '' and 0 or rank_in(set, score, from)
  local page = redis.call('ZRANGE', set, first, first + most - #found - 1, 'WITHSCORES')
  for i = 1, #page, 2 do
    found[#found + 1] = page[i]
    at = { number, page[i], page[i + 1], '' }
  end
end

local first = after == '' and '-inf' or after
while #found < most do
  local name, number = unpack(redis.call('ZRANGEBYSCORE', lanes, first, '+inf', 'WITHSCORES', 'LIMIT', 0, 1))
  if not name then
    break
  end
  -- Only in the lane of the last page's last task does the page begin after that task.
  local from = number == after and last or ''
  local is_in_priorities = from ~= '' and score ~= ''
  if not is_in_priorities then
    read_list(number, name, from)
  end
  if #found < most then
    read_priorities(number, name, is_in_priorities and from or '')
  end
  first = '(' .. number
end
return { found, unpack(at) }
