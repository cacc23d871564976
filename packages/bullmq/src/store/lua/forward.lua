#!lua flags=allow-oom
-- Adds tasks from outboxes to one queue. Redis runs this script even if its memory is full, because each task takes the place of an entry
-- that takes as much memory.
--
-- KEYS[1]  any     any key of the queue, by which a Redis Cluster finds the queue
-- ARGV[1]  base    the prefix of the queue's keys
-- ARGV[2]  length  how many arguments the call has; if it may have been sent before, it has one more
-- ARGV...  the tasks (includes/add/new-task.lua)
--
-- Returns `AddReply[]`: the reply for each task (includes/add/new-tasks.lua).
--- @type AddReply from ../add.ts
local any = KEYS[1]
local base, length = ARGV[1], ARGV[2]
--- @include new-tasks

return add_tasks(3, tonumber(length), false)
