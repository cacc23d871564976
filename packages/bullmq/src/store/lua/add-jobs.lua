#!lua
-- Adds several jobs of a team's own Queue, or the jobs of a FlowProducer, each to its queue. A parent comes before its children.
--
-- KEYS  any     any key of the first job's queue, by which a Redis Cluster finds the queue
-- ARGV  isFlow  '1' if parents wait for all of these jobs. Otherwise, each job is added as if it were alone
-- ARGV[2...]  the jobs (includes/bullmq/own-adds.lua)
--
-- Returns `(string | number)[]`: for each job its id, or BullMQ's code if it is refused (includes/bullmq/own-adds.lua).
--- @include own-adds

local replies, job, at = {}, nil, 2
while at <= #ARGV do
  job, at = read_own_job(at)
  replies[#replies + 1] = add_job(job, isFlow == '1')
end
end_flow()
return replies
