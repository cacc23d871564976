#!lua
-- Adds one job of a team's own Queue, alone or in a transaction of the team's.
--
-- KEYS  any  any key of the job's queue, by which a Redis Cluster finds the queue
-- ARGV[1...]  the job (includes/bullmq/own-adds.lua)
--
-- Returns `string | number`: the id of the job, or BullMQ's code if it is refused (includes/bullmq/own-adds.lua).
--- @include own-adds

local job = read_own_job(1)
return add_job(job, false)
