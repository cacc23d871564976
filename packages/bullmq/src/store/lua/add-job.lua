#!lua
-- Adds one job of a team's own Queue, alone or in a transaction of the team's.
--
-- KEYS[1]  any   any key of the job's queue, by which a Redis Cluster finds the queue
-- ARGV...  the job (includes/bullmq/own-adds.lua)
--
-- Returns `string | number`: the id of the job, or BullMQ's code if it is refused (includes/bullmq/own-adds.lua).
local any = KEYS[1]
--- @include own-adds

local job = read_own_job(1)
return add_job(job, false)
