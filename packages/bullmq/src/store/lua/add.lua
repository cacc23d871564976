#!lua
-- Adds tasks to one queue.
--
-- KEYS  any     any key of the queue, by which a Redis Cluster finds the queue
-- ARGV  base
-- ARGV  isAll   '1' if either all tasks are added or none; otherwise each task is added or refused on its own
-- ARGV  length  how many arguments the call has; if it may have been sent before, it has one more
-- ARGV[4...]  the tasks (includes/add/new-task.lua)
--
-- Returns `AddReply[]`: the reply for each task (includes/add/new-tasks.lua). If one of all tasks is refused, it is '' for those that
-- would have been added.
--- @type AddReply from ../add.ts
--- @include new-tasks

return add_tasks(4, tonumber(length), isAll == '1')
