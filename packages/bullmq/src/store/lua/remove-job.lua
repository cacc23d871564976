#!lua flags=allow-oom
-- Removes a job, wherever it is, in place of BullMQ's `removeJob`.
--
-- KEYS  job
-- ARGV  base, id
-- ARGV  children  '1' to also remove the job's children, and theirs
--
-- Returns `number`: 1, also if the job does not exist; 0 if nothing was removed, because a worker has the job or one of the children for
-- which it waits; or BullMQ's code -8 if the job is the next one of a job scheduler.
--- @include job-removal

if is_next_of_scheduler(id) then
  return -8
end
if is_locked(job, children == '1') then
  return 0
end
remove_job(base, id, nil, { with_children = children == '1' })
return 1
