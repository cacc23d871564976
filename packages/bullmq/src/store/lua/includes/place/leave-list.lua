-- leave_list(list, id) removes a task from a list of tasks, which is `wait`, `paused`, `active` or that of a lane. Returns whether the task
-- was there.
--
-- The list is searched from both ends, because the search passes every task on its way: removing a task from the middle of a list of
-- 200,000 takes Redis about 1 ms. Its newest tasks are at the left end, and LREM starts at the right end if the count is negative.

-- Looking at this many takes Redis about 3 µs.
local NEWEST = 250

local function leave_list(list, id)
  local newest = redis.call('LPOS', list, id, 'MAXLEN', NEWEST)
  return redis.call('LREM', list, newest and 1 or -1, id) == 1
end
