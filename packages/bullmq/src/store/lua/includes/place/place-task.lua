-- Puts tasks into the places where they wait, with the events from which BullMQ's tools learn of it. `base` is the prefix of the
-- queue's keys.
--
-- place_task(task)                            puts a new task into `delayed` if it has a delay, and otherwise behind those that wait
-- delay_task(id, due, part)                   puts a task into `delayed` and into `scheduled` or `retrying`. `due` is in ms since 1970
-- place_waiting(id, lane, priority, to_head)  puts a task into its lane, `prioritized` or `wait`: behind the others there or, if `to_head`,
--                                             before them. A task that belongs behind those in `wait` is only kept in the table `waiting`
-- write_waiting()                             writes the kept tasks to `wait`, and the marker that wakes a worker if one has to wake. A
--                                             script that has placed a task without `to_head` must call it after the last one
--
-- The includer declares `rare()`, whose `enter_place` is that of enter-place.lua. Few tasks need it: most have no lane and no priority.
--- @include time
--- @include queue-meta
--- @include delayed-set

local waiting, may_wake, has_delayed = {}, false, false

local function delay_task(id, due, part)
  enter_delayed(base, id, due, part)
  has_delayed = true
end

local function place_waiting(id, lane, priority, to_head)
  local is_first = true
  if lane or priority > 0 or to_head then
    is_first = rare().enter_place(id, lane, priority, to_head)
  else
    waiting[#waiting + 1] = id
  end
  may_wake = may_wake or is_first
end

local function place_task(task)
  local id = task.id
  add_move_event('added', id, 'name', task.name)
  if task.delay then
    local due = task.enqueued_at + task.delay
    delay_task(id, due, 'scheduled')
    return add_move_event('delayed', id, 'delay', whole(due))
  end
  place_waiting(id, task.lane, tonumber(task.priority or 0), false)
  add_move_event('waiting', id)
end

local function write_waiting()
  if #waiting > 0 then
    redis.call('LPUSH', base .. 'wait', unpack(waiting))
    waiting = {}
  end
  if may_wake and is_open() then
    redis.call('ZADD', base .. 'marker', '0', '0')
  end
  -- The script may have replaced the only delayed task.
  local due = has_delayed and next_due(base)
  if due then
    redis.call('ZADD', base .. 'marker', whole(due), '1')
  end
end
