#!lua flags=allow-oom
-- Adds tasks from outboxes to one queue. Redis runs this script even if its memory is full, because each task takes the place of an entry
-- that takes as much memory.
--
-- KEYS  any     any key of the queue, by which a Redis Cluster finds the queue
-- ARGV  base
-- ARGV  length  how many arguments the call has; if it may have been sent before, it has one more
-- ARGV[3...]  the tasks (includes/add/new-task.lua)
--
-- Returns `AddReply[]`: the reply for each task (includes/add/new-tasks.lua).
--- @type AddReply from ../add.ts
--- @include new-tasks

return add_tasks(3, tonumber(length), false)
