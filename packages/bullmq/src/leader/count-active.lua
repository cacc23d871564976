#!lua flags=allow-oom
-- Counts the active tasks of each concurrency key, and what they hold of each limiter, again, in case another tool or a lost task has made
-- the counts wrong. About 1 µs for each active task.
--
-- KEYS[1]  leader
-- KEYS[2]  totals
-- ARGV[1]  fencing  the leader's fencing number
-- ARGV[2]  base     the prefix of the queue's keys
--
-- Returns `number`: how many counts and blocked lanes were wrong, which is added to `drift` in the queue's totals. 0, without writing
-- anything, if there is a newer leader.
local leader, totals = KEYS[1], KEYS[2]
local fencing, base = ARGV[1], ARGV[2]
--- @include time
--- @include fence
--- @include active-count

if is_deposed(leader, fencing) then
  return 0
end
redis.call('HSET', totals, 'countedAt', whole(millis()))
local wrong = count_active(false)
if wrong > 0 then
  redis.call('HINCRBY', totals, 'drift', wrong)
end
return wrong
