#!lua flags=allow-oom
-- Removes all waiting jobs, in place of BullMQ's `drain`, except for the next ones of job schedulers. O(n).
--
-- KEYS  wait
-- ARGV  base
-- ARGV  delayed  '1' to also remove the delayed jobs
--- @include job-removal
--- @include forget-turns

local function drain_list(list)
  local kept = {}
  for _, id in ipairs(redis.call('LRANGE', list, 0, -1)) do
    if is_next_of_scheduler(id) then
      kept[#kept + 1] = id
    else
      delete_in_bulk(id)
    end
  end
  redis.call('DEL', list)
  for _, id in ipairs(kept) do
    redis.call('RPUSH', list, id)
  end
end

local function drain_set(set)
  for _, id in ipairs(redis.call('ZRANGE', base .. set, 0, -1)) do
    if not is_next_of_scheduler(id) then
      leave_set(base, set, id)
      delete_in_bulk(id)
    end
  end
end

drain_list(wait)
drain_list(base .. 'paused')
drain_set('prioritized')
for _, name in ipairs(redis.call('ZRANGE', base .. 'lanes', 0, -1)) do
  drain_list(lane_list(base, name))
  drain_set('lane-priorities:' .. name)
end
redis.call('UNLINK', base .. 'lanes')
forget_turns(base)
if delayed == '1' then
  drain_set('delayed')
end
