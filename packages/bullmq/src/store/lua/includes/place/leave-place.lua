-- Takes a task out of the place where it waits. `base` is the prefix of the queue's keys.
--
-- leave_ready(id)          removes a task that is not delayed, and returns the name of its place: `prioritized`, `lanes` or `wait`; or
--                          nil if it was in none of them
-- take_out(id)             does so with any task that waits, whose place may also be `delayed`
-- delete_waiting_task(id)  takes out and deletes a task that has not ended, which refunds its charge (delete-counted.lua). Returns the name
--                          of its place, or nil
--- @include delayed-set
--- @include leave-lane
--- @include leave-list
--- @include delete-counted

-- A list is searched last, because the search passes every task on its way.
local function leave_ready(id)
  if redis.call('ZREM', base .. 'prioritized', id) == 1 then
    return 'prioritized'
  end
  local lane = redis.call('HGET', base .. id, 'lane')
  if lane and leave_lane(lane, id) then
    return 'lanes'
  end
  return leave_list(base .. 'wait', id) and 'wait' or nil
end

local function take_out(id)
  return leave_delayed(base, id) and 'delayed' or leave_ready(id)
end

local function delete_waiting_task(id)
  local place = take_out(id)
  delete_counted(base, id)
  return place
end
