#!lua flags=no-writes
-- Returns when the first lock of a queue's marked tasks expires. O(marked tasks).
--
-- KEYS[1]  stalled  BullMQ's set of the active tasks that are marked because their locks have not been renewed since the last check
-- ARGV[1]  base     the prefix of the queue's keys
--
-- Returns `number | null`: in how many ms it expires, or null if none of these tasks has a lock.
local stalled = KEYS[1]
local base = ARGV[1]

local soonest
for _, id in ipairs(redis.call('SMEMBERS', stalled)) do
  local left = redis.call('PTTL', base .. id .. ':lock')
  if left >= 0 and (not soonest or left < soonest) then
    soonest = left
  end
end
return soonest
