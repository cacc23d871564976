-- enter_place(id, lane, priority, to_head) puts a task where it waits for a worker: into its lane, `prioritized` or `wait`, behind the
-- others there or, if `to_head`, before them. A task with a priority goes behind or before those of its priority. `lane` is the task's
-- field of that name, and `priority` is 0 if it has none. Returns whether a worker has to wake (lanes.lua). `base` is the prefix of the
-- queue's keys.
--- @include lanes
--- @include priority-score

local function enter_place(id, lane, priority, to_head)
  if lane then
    return enter_lane(lane, id, priority, to_head)
  end
  if priority > 0 then
    local order = to_head and 0 or redis.call('INCR', base .. 'pc')
    redis.call('ZADD', base .. 'prioritized', priority_score(priority, order), id)
  else
    redis.call(to_head and 'RPUSH' or 'LPUSH', base .. 'wait', id)
  end
  return true
end
