#!lua flags=no-writes
-- Counts the active tasks of each concurrency key among some of a queue's active tasks. Takes one command for each task.
--
-- KEYS[1]  active
-- ARGV[1]  base    the prefix of the queue's keys
-- ARGV[2]  passed  how many tasks to pass over from the right end of the list
-- ARGV[3]  scan    how many tasks to examine
--
-- Returns `Array<[key: string, count: number]>`
local active = KEYS[1]
local base, passed, scan = ARGV[1], ARGV[2], ARGV[3]
--- @include lane

local counts, found = {}, {}
for _, id in ipairs(redis.call('LRANGE', active, -passed - scan, -passed - 1)) do
  local lane = redis.call('HGET', base .. id, 'lane')
  local key = lane and split_lane(lane_name(lane)) or ''
  if key ~= '' then
    counts[key] = (counts[key] or 0) + 1
  end
end
for key, count in pairs(counts) do
  found[#found + 1] = { key, count }
end
return found
