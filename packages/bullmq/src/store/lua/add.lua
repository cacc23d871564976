#!lua
-- Adds tasks to one queue.
--
-- KEYS[1]  any     any key of the queue, by which a Redis Cluster finds the queue
-- ARGV[1]  base    the prefix of the queue's keys
-- ARGV[2]  isAll   '1' if either all tasks are added or none; otherwise each task is added or refused on its own
-- ARGV[3]  length  how many arguments the call has; if it may have been sent before, it has one more
-- ARGV...  the tasks (includes/add/new-task.lua)
--
-- Returns `AddReply[]`: the reply for each task (includes/add/new-tasks.lua). If one of all tasks is refused, it is '' for those that
-- would have been added.
--- @type AddReply from ../add.ts
local any = KEYS[1]
local base, isAll, length = ARGV[1], ARGV[2], ARGV[3]
--- @include new-tasks

return add_tasks(4, tonumber(length), isAll == '1')
