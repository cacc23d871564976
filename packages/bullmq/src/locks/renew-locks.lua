#!lua flags=allow-oom
-- Renews the locks of running tasks, and removes the marks of the checks for lost tasks (../store/lua/recover.lua), as BullMQ's own
-- extendLocks does. The caller limits how many locks one script renews.
--
-- KEYS  any     any key of the queue, by which a Redis Cluster finds the queue
-- ARGV  base
-- ARGV  lockMs  the duration of a lock, in ms
-- ARGV[3...]  the id and the token of each lock
--
-- Returns `number[]`: the positions, counted from 1, of the locks that this process no longer holds.
--- @include lock
--- @include unmark

local lost = {}
for i = 3, #ARGV, 2 do
  local id, token = ARGV[i], ARGV[i + 1]
  if owns_lock(base .. id, token) then
    redis.call('HSET', base .. id, 'lock', lock_of(token, lockMs))
    unmark(id)
  else
    lost[#lost + 1] = (i - 1) / 2
  end
end
return lost
