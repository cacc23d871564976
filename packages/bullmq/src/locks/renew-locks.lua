#!lua flags=allow-oom
-- Renews the locks of running tasks, and removes the tasks from the set of those that may have lost their process, as BullMQ's own
-- extendLocks does. The caller limits how many locks one script renews.
--
-- KEYS[1]  stalled  the tasks that may have lost their process
-- ARGV[1]  base     the prefix of the queue's keys
-- ARGV[2]  lockMs   the duration of a lock, in ms
-- ARGV...           the id and the token of each lock
--
-- Returns `number[]`: the positions, counted from 1, of the locks that this process no longer holds.
local stalled = KEYS[1]
local base, lockMs = ARGV[1], ARGV[2]

local lost = {}
for i = 3, #ARGV, 2 do
  local id, token = ARGV[i], ARGV[i + 1]
  local lock = base .. id .. ':lock'
  if redis.call('GET', lock) == token then
    redis.call('SET', lock, token, 'PX', lockMs)
    redis.call('SREM', stalled, id)
  else
    lost[#lost + 1] = (i - 1) / 2
  end
end
return lost
