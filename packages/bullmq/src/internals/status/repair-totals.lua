#!lua flags=allow-oom
-- Corrects a queue's totals, so that every accepted task is accounted for again, and stores when it did. This is the last step of an index
-- repair. Tasks that are counted as accepted but are not in any structure were removed without being counted, and are added to `removed`.
-- Tasks that are in a structure without being counted are added to `accepted`. Totals never decrease. O(1), because the number of tasks in
-- each status is the size of a structure.
--
-- KEYS  totals, wait, active, prioritized, lanes, turnState, waitingChildren, delayed, completed, failed
--
-- Returns `number`: by how many tasks a total was corrected, which is also added to `drift`.
--- @include time

redis.call('HSET', totals, 'comparedAt', whole(millis()))
local in_lanes = tonumber(redis.call('HGET', turnState, 'waiting')) or 0
local tasks = redis.call('LLEN', wait) + redis.call('LLEN', active) + in_lanes
for _, set in ipairs({ prioritized, waitingChildren, delayed, completed, failed }) do
  tasks = tasks + redis.call('ZCARD', set)
end
local accepted, removed = unpack(redis.call('HMGET', totals, 'accepted', 'removed'))
local unaccounted = tonumber(accepted or '0') - tonumber(removed or '0') - tasks
if unaccounted == 0 then
  return 0
end
local correction = math.abs(unaccounted)
redis.call('HINCRBY', totals, unaccounted > 0 and 'removed' or 'accepted', correction)
redis.call('HINCRBY', totals, 'drift', correction)
return correction
