-- Lanes: a lane consists of the waiting tasks with the same concurrency key that need the same shares of limiters. A task has a lane if its
-- queue is fair and it has a concurrency key, or if it needs a limiter.
--
-- A lane consists of a list and, for tasks with a priority, a sorted set. As in BullMQ, the tasks of the list start first, and the next one
-- is at the right end of the list. Five kinds of key belong to the lanes of a queue:
--
--   lane:<name> and lane-priorities:<name>  the tasks of one lane
--   lanes       each lane that has a task, in the order in which the lanes received their first task. The lanes are listed and scanned in
--               this order, which does not change while a lane has a task.
--   turns       the lanes by their pass. The lane with the smallest pass is next (turns.lua). A lane that has become empty keeps its place
--               until its turn, because a key with one task at a time would otherwise always be first.
--   turn-state  the number of tasks in all lanes (`waiting`), a counter (`order`), the pass of the tasks without a lane (`pass`), and that
--               of the turn in which a lane was last blocked (`time`: blocked-lanes.lua)
--
-- When no task waits, the next fetch deletes all of these keys.
--
-- The name of a lane is its concurrency key or, if its tasks need shares of limiters, the key, the character U+001E and these needs. A
-- task's own field `lane` has the weight of its turn and the name of its lane, separated by a blank. The field is written when the task
-- is added, and never changes. The task is in its lane whenever it waits, whichever script has returned it there. If a Worker with
-- BullMQ's own backend has put the task into `wait`, the task starts from there, or returns to its lane if the queue limits anything.
--
-- enter_lane(lane, id, priority, to_head)  puts a task with this field `lane` into its lane, at its head if `to_head`. `priority` is 0
--                                          if the task has none. Returns whether a worker has to wake
--
-- leave-lane.lua takes tasks out of lanes, and turns.lua starts them. `base` is the prefix of the queue's keys.
--- @include lane
--- @include priority-score

-- An empty lane that gets a task joins this part of a turn behind the lane that is next (turns.lua).
local JOINS_BEHIND = 0.125

local function join_turns(name)
  local first = redis.call('ZRANGE', base .. 'turns', 0, 0, 'WITHSCORES')
  local time, others = unpack(redis.call('HMGET', base .. 'turn-state', 'time', 'pass'))
  -- A lane that has waited for a limiter takes turns at an early pass.
  local pass = (first[2] or time) and math.max(first[2] or 0, time or 0) + JOINS_BEHIND or others or 0
  redis.call('ZADD', base .. 'turns', 'NX', pass, name)
end

-- No worker has to wake if the lane already had a task, because that task has woken a worker or could not start, or if the lane is
-- blocked until another task ends, because no worker could start the new task. If the lane is blocked until some time, an idle worker
-- has to wake to learn that time.
local function enter_lane(lane, id, priority, to_head)
  local name, state, was_empty = lane_name(lane), base .. 'turn-state', false
  local list, priorities = lane_list(base, name), lane_priorities(base, name)
  if priority > 0 then
    was_empty = redis.call('EXISTS', list, priorities) == 0
    local order = to_head and 0 or redis.call('HINCRBY', state, 'order', 1)
    redis.call('ZADD', priorities, priority_score(priority, order), id)
  else
    was_empty = redis.call(to_head and 'RPUSH' or 'LPUSH', list, id) == 1 and redis.call('EXISTS', priorities) == 0
  end
  redis.call('HINCRBY', state, 'waiting', 1)
  if not was_empty then
    return false
  end
  redis.call('ZADD', base .. 'lanes', redis.call('HINCRBY', state, 'order', 1), name)
  if redis.call('ZSCORE', base .. 'blocked-lanes', name) then
    return redis.call('ZSCORE', base .. 'lane-times', name) and true or false
  end
  join_turns(name)
  return true
end
