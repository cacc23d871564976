-- Takes a task out of the place where it waits.
--
-- leave_delayed(id)        removes a task from `delayed` and its parts, and returns whether it was there
-- leave_ready(id)          removes a task that is not delayed from the place in which it waits, and returns that place's name, or nil if it
--                          is in none
-- take_out(id)             does so with any task that waits
-- delete_waiting_task(id)  deletes a task that has not ended, refunds its charge (task-charge.lua), and returns the name of its place
--- @include leave-lane
--- @include leave-wait
--- @include delete-counted

local function leave_delayed(id)
  if redis.call('ZREM', base .. 'delayed', id) == 0 then
    return false
  end
  redis.call('ZREM', base .. 'scheduled', id)
  redis.call('ZREM', base .. 'retrying', id)
  return true
end

-- A list is searched last, because the search passes every task on its way.
local function leave_ready(id)
  if redis.call('ZREM', base .. 'prioritized', id) == 1 then
    return 'prioritized'
  end
  local lane = redis.call('HGET', base .. id, 'lane')
  if lane and leave_lane(lane, id) then
    return 'lanes'
  end
  return leave_wait(id) and 'wait' or nil
end

local function take_out(id)
  return leave_delayed(id) and 'delayed' or leave_ready(id)
end

local function delete_waiting_task(id)
  local place = take_out(id)
  delete_counted(base, id)
  return place
end
