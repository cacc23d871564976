#!lua flags=allow-oom
-- Deletes those of some jobs that are in no place, in place of BullMQ's `removeOrphanedJobs`. A hash of Bullpen's may have any name, so
-- a hash without a job's name stays. The leader's repair counts such a job as removed, and does not count its bytes (internals/status/
-- index-repair.ts), so it is not counted here.
--
-- KEYS  wait
-- ARGV  base
-- ARGV[2...]  the ids of the jobs
--
-- Returns `number`: how many jobs were deleted.
--- @include delete-job
--- @include lane

local LISTS = { wait, base .. 'active', base .. 'paused' }
local SETS = { 'completed', 'failed', 'delayed', 'prioritized', 'waiting-children' }

local function is_in_place(id, lane)
  for _, list in ipairs(LISTS) do
    if redis.call('LPOS', list, id) then
      return true
    end
  end
  for _, set in ipairs(SETS) do
    if redis.call('ZSCORE', base .. set, id) then
      return true
    end
  end
  local name = lane and lane_name(lane)
  return name
    and (redis.call('LPOS', lane_list(base, name), id) or redis.call('ZSCORE', lane_priorities(base, name), id))
end

-- Returns whether nothing is stored of the job but keys beside its hash, or whether the hash is a job's; and its field `lane`.
local function read_job(id)
  local kind = redis.call('TYPE', base .. id).ok
  if kind ~= 'hash' then
    return kind == 'none', false
  end
  local name, lane = unpack(redis.call('HMGET', base .. id, 'name', 'lane'))
  return name, lane
end

local removed = 0
for i = 2, #ARGV do
  local id = ARGV[i]
  local is_job, lane = read_job(id)
  if is_job and not is_in_place(id, lane) then
    local has_lock = redis.call('DEL', base .. id .. ':lock') == 1
    if delete_keys(base .. id) or has_lock then
      removed = removed + 1
    end
  end
end
return removed
