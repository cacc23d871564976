-- Removes jobs by request, wherever they are, and the children of flows with them.
--
-- is_locked(job, with_children)        returns whether a worker has the job with this key or, `with_children`, a child for which it waits
-- remove_job(home, id, parent, mode)   removes a job. `parent` is the key of the parent if that is being removed with its children, or nil.
--                                      `mode` is a table of `with_children`, and of `is_unprocessed` to keep jobs that a worker has or that
--                                      have failed
-- remove_children(job, mode)           removes the children of a job. If `mode.is_unprocessed`, those that have ended are kept
-- leave_set(home, set, id)             takes a job out of one of BullMQ's sets, and out of that of its status. Returns whether it was there
-- delete_in_bulk(id)                   deletes a job of this queue that the caller has taken out of its place, without an event. A
--                                      parent of the same queue that waits for nothing else any more is deleted with it
-- is_next_of_scheduler(id)             returns whether the job is the next one of a job scheduler, which would not continue without it
--
-- `base` is the prefix of the keys of the script's queue. Children may be in other queues, whose prefix is `home`. Bullpen counts the jobs
-- of this queue, and those of queues whose keys begin with a hash tag.
--- @include give-back
--- @include bullmq-event
--- @include delayed-set
--- @include delete-counted
--- @include leave-lane
--- @include leave-list
--- @include lock
--- @include remove-ended

local function is_locked(job, with_children)
  if is_running(job) then
    return true
  end
  for _, child in ipairs(with_children and redis.call('SMEMBERS', job .. ':dependencies') or {}) do
    if is_locked(child, true) then
      return true
    end
  end
  return false
end

local function leave_lists(home, id)
  local lane = home == base and redis.call('HGET', base .. id, 'lane')
  if lane and leave_lane(lane, id) or leave_list(home .. 'wait', id) then
    return 'wait'
  end
  if leave_list(home .. 'paused', id) then
    return 'paused'
  end
  if not leave_list(home .. 'active', id) then
    return 'unknown'
  end
  if lane then
    give_back(lane)
  end
  return 'active'
end

local function leave_set(home, set, id)
  if set == 'failed' then
    return leave_failed(home, id)
  end
  if set == 'delayed' then
    return leave_delayed(home, id)
  end
  return redis.call('ZREM', home .. set, id) == 1
end

-- Returns the name that BullMQ has for the job's place.
local function leave_place(home, id)
  for _, set in ipairs({ 'completed', 'waiting-children', 'delayed', 'failed', 'prioritized' }) do
    if leave_set(home, set, id) then
      return set
    end
  end
  return leave_lists(home, id)
end

local function forget_deduplication(home, id)
  local deduplication = redis.call('HGET', home .. id, 'deid')
  if deduplication and redis.call('GET', home .. 'de:' .. deduplication) == id then
    redis.call('DEL', home .. 'de:' .. deduplication, home .. 'dn:' .. deduplication)
  end
end

-- Returns whether the job existed.
local function delete_removed(home, id)
  if home ~= base and not string.find(home, '^%b{}:[^:]+:$') then
    return delete_keys(home .. id)
  end
  return delete_counted(home, id)
end

local function child_keys(job, mode)
  local keys = {}
  local function add(found)
    for _, key in ipairs(found) do
      keys[#keys + 1] = key
    end
  end
  if not mode.is_unprocessed then
    add(redis.call('HKEYS', job .. ':processed'))
    add(redis.call('HKEYS', job .. ':failed'))
    add(redis.call('ZRANGE', job .. ':unsuccessful', 0, -1))
  end
  add(redis.call('SMEMBERS', job .. ':dependencies'))
  return keys
end

local remove_children

-- As in BullMQ, a parent that waits for nothing else any more is put into `wait`, even if it is removed afterwards.
local function remove_job(home, id, parent, mode)
  local job = home .. id
  if mode.is_unprocessed and (is_locked(job, false) or redis.call('ZSCORE', home .. 'failed', id)) then
    return
  end
  leave_parent(job, parent or redis.call('HGET', job, 'parentKey'))
  if mode.with_children then
    remove_children(job, mode)
  end
  local place = leave_place(home, id)
  forget_deduplication(home, id)
  if delete_removed(home, id) then
    add_event_of(home, 'removed', id, 'prev', place)
  end
end

function remove_children(job, mode)
  for _, key in ipairs(child_keys(job, mode)) do
    local home, id = split_job_key(key)
    remove_job(home, id, job, mode)
  end
end

local function delete_in_bulk(id)
  local job = base .. id
  local home, parent = detach_child(job, redis.call('HGET', job, 'parentKey'))
  if home == base then
    delete_in_bulk(parent)
  elseif home then
    place_job(home, parent, { priority = 0, to_head = true, from = 'waiting-children' })
  end
  forget_deduplication(base, id)
  delete_removed(base, id)
end

local function is_next_of_scheduler(id)
  local scheduler = redis.call('HGET', base .. id, 'rjk')
  local next_at = scheduler and redis.call('ZSCORE', base .. 'repeat', scheduler)
  return next_at and id == 'repeat:' .. scheduler .. ':' .. next_at
end
