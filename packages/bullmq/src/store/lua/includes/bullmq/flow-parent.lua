-- Tells the parent of a BullMQ flow that a child has ended. A parent goes on when it leaves `waiting-children`: it then waits for a worker
-- before the others or, if it has a delay, until it is due.
--
-- report_to_parent(parent, child, reason, at)     for a child that is not completed. `parent` is the child's field of that name, decoded,
--                                                 `child` is the child's key, and `at` is the time of its end, in ms since 1970
-- report_completed(parent_key, child, value, at)  for a completed child: the parent finds its value among those of its children, and goes
--                                                 on when it waits for no other child. `parent_key` is the child's field `parentKey`
-- resume_parent(home, id, at)                     lets a parent go on that has been waiting for its children. `home` is the prefix of its
--                                                 queue's keys
--
-- BullMQ stores the options of a child with it. If the child is not completed, the first option that is set decides, and without any of
-- them, the parent waits on.
--
--   fpof  the parent goes on at once, even if it is delayed, and fails when it starts because it has the field `defa`
--   cpof  the parent goes on at once, and finds the reason among those of its failed children
--   idof  the parent finds the reason there, and goes on once it waits for no other child
--   rdof  the same as `idof`, but the parent does not find the reason
--- @include place-job

-- Puts a parent where it waits for a worker. Only Bullpen's queues, whose keys begin with a hash tag, have a set for each status.
local function place_parent(home, id, at)
  local priority, delay, attempts = unpack(redis.call('HMGET', home .. id, 'priority', 'delay', 'atm'))
  delay = tonumber(delay) or 0
  local part = (tonumber(attempts) or 0) > 0 and 'retrying' or 'scheduled'
  place_job(home, id, {
    due = delay > 0 and at + delay or nil,
    part = string.find(home, '^%b{}:[^:]+:$') and part or nil,
    priority = tonumber(priority) or 0,
    to_head = true,
    from = 'waiting-children',
  })
end

local function resume_parent(home, id, at)
  if redis.call('EXISTS', home .. id) == 1 and redis.call('ZREM', home .. 'waiting-children', id) == 1 then
    place_parent(home, id, at)
  end
end

local function fail_parent(home, id, child, at)
  local job = home .. id
  if redis.call('EXISTS', job) == 0 then
    return
  end
  local waits = redis.call('ZREM', home .. 'waiting-children', id) == 1
  if not waits and leave_delayed(home, id) then
    redis.call('HSET', job, 'delay', '0')
    waits = true
  end
  if waits or not redis.call('ZSCORE', home .. 'failed', id) then
    redis.call('HSET', job, 'defa', 'child ' .. child .. ' failed')
  end
  if waits then
    place_parent(home, id, at)
  end
end

local function report_to_parent(parent, child, reason, at)
  local home, id = parent.queueKey .. ':', parent.id
  local job = home .. id
  local is_told = parent.fpof or parent.cpof or parent.idof or parent.rdof
  if not is_told or redis.call('SREM', job .. ':dependencies', child) == 0 then
    return
  end
  if parent.fpof then
    redis.call('ZADD', job .. ':unsuccessful', at, child)
    return fail_parent(home, id, child, at)
  end
  if parent.cpof or parent.idof then
    redis.call('HSET', job .. ':failed', child, reason)
  end
  if parent.cpof or redis.call('EXISTS', job .. ':dependencies') == 0 then
    resume_parent(home, id, at)
  end
end

local function report_completed(parent_key, child, value, at)
  if redis.call('SREM', parent_key .. ':dependencies', child) == 0 then
    return
  end
  redis.call('HSET', parent_key .. ':processed', child, value)
  if redis.call('EXISTS', parent_key .. ':dependencies') == 0 then
    local home, id = split_job_key(parent_key)
    resume_parent(home, id, at)
  end
end
