#!lua flags=allow-oom
-- Counts again how many tasks of each concurrency key are active, and what the active tasks hold of each limiter, in case another tool or a
-- lost task has made the counts wrong. Takes about 1 µs for each active task.
--
-- KEYS  leader, totals
-- ARGV  fencing, base
--
-- Returns `number`: how many counts and blocked lanes were wrong, which the script adds to `drift` in the queue's totals. If there is a
-- newer leader, the script writes nothing and returns 0.
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
