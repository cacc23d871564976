#!lua flags=no-writes
-- Counts the active tasks of each concurrency key among some of a queue's active tasks. Takes one command for each task.
--
-- KEYS  active
-- ARGV  base
-- ARGV  passed  how many tasks to pass over from the right end of the list
-- ARGV  scan    how many tasks to examine
--
-- Returns `Array<[key: string, count: number]>`
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
