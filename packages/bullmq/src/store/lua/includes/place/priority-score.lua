-- priority_score(priority, order) returns the score of a task in a set of tasks with a priority. BullMQ orders the tasks of a priority by a
-- counter in the lower bits. A task that starts before those of its priority has the order 0.
--- @include time

local PRIORITY_STEP = 0x100000000

local function priority_score(priority, order)
  return whole(priority * PRIORITY_STEP + order % PRIORITY_STEP)
end
