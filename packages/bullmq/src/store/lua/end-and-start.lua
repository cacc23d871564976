#!lua flags=allow-oom
-- Ends attempts of the tasks of one queue, and then starts tasks.
--
-- KEYS[1]  any     any key of the queue, by which a Redis Cluster finds the queue
-- ARGV[1]  base    the prefix of the queue's keys
-- ARGV[2]  time    the time by the clock that all of the queue's processes share, in ms since 1970
-- ARGV[3]  ends    how many attempts end
-- ARGV[4]  starts  how many tasks may start
-- ARGV...  the ends (includes/attempt-end.lua), and then the starts (includes/task-start.lua)
--
-- Returns `[ends: readonly number[], starts: readonly StartReply[]]`: for each end 0, the code with which BullMQ refuses it, or how long
-- the queue's rate limit still holds up a task that returns to its place; and a reply for each start. If an end was refused, or has been
-- stored before, nothing starts.
--- @type StartReply from ../moves.ts
local any = KEYS[1]
local base, time, ends, starts = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local now = tonumber(time)

-- What the ends and starts so far leave for others: the queue's features (queue-features.lua), whether tasks have ended or been delayed,
-- and whether a start has found that nothing waits.
local features, has_ended, has_delayed, is_idle = nil, false, false, false
--- @include task-charge
--- @include queue-meta
--- @include rare-functions
--- @include task-end
--- @include attempt-end
--- @include task-start

local codes, replies, at, may_start = {}, {}, 5, true
for n = 1, tonumber(ends) do
  local ending, is_done
  ending, at = read_end(at)
  codes[n], is_done = end_attempt(ending)
  may_start = may_start and is_done
end
for n = 1, may_start and tonumber(starts) or 0 do
  replies[n] = start_task(at)
  at = at + 6
end

local last = replies[#replies]
if has_delayed and not (last and last[1] ~= 0) then
  rare('idle').wake_when_due()
end
if has_ended and (not last or is_idle) then
  rare('idle').note_drained()
end
return { codes, replies }
