#!lua flags=allow-oom
-- Removes old jobs of one state, in place of BullMQ's `cleanJobsInSet`: the oldest ones of a list, or those of a set with the lowest
-- scores. The states `wait` and `prioritized` include the tasks in lanes.
--
-- KEYS  place   BullMQ's list or set of that state
-- ARGV  base
-- ARGV  state   its name
-- ARGV  before  up to which time the jobs are removed, in ms since 1970: that of their end, last start or enqueue
-- ARGV  limit   how many jobs are removed at most, or 0 for all
--
-- Returns `string[]`: the ids of the removed jobs.
--- @include job-removal

-- The first of these fields that a job has is its time. That of a job that has ended is its score.
local OF_LISTS = { 'finishedOn', 'processedOn', 'timestamp' }
local TIMES = {
  active = OF_LISTS,
  wait = OF_LISTS,
  paused = OF_LISTS,
  delayed = { 'processedOn', 'timestamp' },
  prioritized = { 'timestamp' },
}
local times, removed, most = TIMES[state], {}, tonumber(limit)

local function is_old(id)
  for _, time in ipairs(redis.call('HMGET', base .. id, unpack(times))) do
    if time then
      return tonumber(time) <= tonumber(before)
    end
  end
  return true
end

local function may_remove(id)
  if not times then
    return true
  end
  local is_held = state == 'active' and is_running(base .. id)
  return not is_held and not is_next_of_scheduler(id) and is_old(id)
end

local function remove(id)
  local lane = state == 'active' and redis.call('HGET', base .. id, 'lane')
  if lane then
    give_back(lane)
  end
  delete_in_bulk(id)
  removed[#removed + 1] = id
end

-- How many more jobs are removed at most, or 0 for all.
local function left()
  return most > 0 and most - #removed or 0
end

local function clean_list(list)
  local ids, removed_before = redis.call('LRANGE', list, most > 0 and -left() or 0, -1), #removed
  for i, id in ipairs(ids) do
    if may_remove(id) then
      redis.call('LSET', list, i - #ids - 1, '')
      remove(id)
    end
  end
  -- A single LREM removes all of them in one walk of the list.
  if #removed > removed_before then
    redis.call('LREM', list, 0, '')
  end
end

local function clean_set(set)
  local range = most > 0 and { 'LIMIT', 0, left() } or {}
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', set, 0, times and '+inf' or before, unpack(range))) do
    if may_remove(id) then
      if set == place then
        leave_set(base, state, id)
      else
        redis.call('ZREM', set, id)
      end
      remove(id)
    end
  end
end

local is_list = times == OF_LISTS
local clean, key_in_lane = is_list and clean_list or clean_set, is_list and lane_list or lane_priorities
clean(place)
local has_lanes = state == 'wait' or state == 'prioritized'
for _, name in ipairs(has_lanes and redis.call('ZRANGE', base .. 'lanes', 0, -1) or {}) do
  if most > 0 and left() == 0 then
    break
  end
  local removed_before = #removed
  clean(key_in_lane(base, name))
  if #removed > removed_before then
    note_left_lane(name, #removed - removed_before)
  end
end
redis.call('XADD', base .. 'events', '*', 'event', 'cleaned', 'count', #removed)
return removed
