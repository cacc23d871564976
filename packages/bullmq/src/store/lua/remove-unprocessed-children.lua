#!lua flags=allow-oom
-- Removes the children of a job, and theirs, that no worker has and that have not ended, in place of BullMQ's `removeUnprocessedChildren`.
--
-- KEYS[1]  job   the job
-- ARGV[1]  base  the prefix of the queue's keys
local job = KEYS[1]
local base = ARGV[1]
--- @include job-removal

remove_children(job, { with_children = true, is_unprocessed = true })
