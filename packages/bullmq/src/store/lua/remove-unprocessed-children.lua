#!lua flags=allow-oom
-- Removes the children of a job, and theirs, that no worker has and that have not ended, in place of BullMQ's `removeUnprocessedChildren`.
--
-- KEYS  job
-- ARGV  base
--- @include job-removal

remove_children(job, { with_children = true, is_unprocessed = true })
