#!lua flags=no-writes
-- Reads one page of a list from its right end, beginning after a task that may have left the list in the meantime.
--
-- BullMQ takes jobs from the right end. If the given task has been taken, so have all tasks to its right, and the page begins at the right
-- end. The same happens if the given task was cancelled, so that tasks are then listed twice, but no task is skipped. If only other tasks
-- have been taken or returned in the meantime, the script searches the list for the given task, which takes Redis about 1 ms at a depth of
-- 100,000 tasks. Otherwise, the task is found at its position.
--
-- KEYS  list
-- ARGV  last          the task after which the page begins; '' to begin at the right end
-- ARGV  passedBefore  how many tasks there were from the right end up to and including that task
-- ARGV  limit         how many tasks to read
--
-- Returns `[passed: number, ids: string[]]`: how many tasks there are between the right end and the page, and the page from left to right.
--- @include passed-in-list

local passed = passed_in_list(list, last, passedBefore)
return { passed, redis.call('LRANGE', list, -passed - limit, -passed - 1) }
