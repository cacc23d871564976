#!lua flags=allow-oom
-- Pauses or resumes a queue, in place of BullMQ's `pause`.
--
-- KEYS  any     any key of the queue, by which a Redis Cluster finds the queue
-- ARGV  base
-- ARGV  paused  '1' to pause the queue, '' to resume it
--
-- Returns `number`: 0; or 1 if there are more jobs of older versions of BullMQ (includes/bullmq/pausing.lua) than one run moves, and
-- the queue is still paused.
--- @include pausing

if paused == '1' then
  pause_queue()
  return 0
end
if take_back_jobs() then
  return 1
end
resume_queue()
wake_workers()
return 0
