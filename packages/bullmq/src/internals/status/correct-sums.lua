#!lua flags=allow-oom
-- Corrects the stored sums of a queue's unfinished tasks, and counts one repair. If anything was repaired since the sums were read, changes
-- nothing, because the same correction may have been made. O(1) for each API key.
--
-- KEYS  totals, apiKeyTasks
-- ARGV  drift  the number of repairs when the sums were read
-- ARGV  bytes  what to add to the sum of the bytes
-- ARGV[3...]  for each API key whose count is wrong, its name and what to add to its count
--
-- Returns `0 | 1`: whether the sums were corrected.
if tonumber(redis.call('HGET', totals, 'drift') or '0') ~= tonumber(drift) then
  return 0
end
redis.call('HINCRBY', totals, 'bytes', bytes)
for i = 3, #ARGV, 2 do
  if redis.call('HINCRBY', apiKeyTasks, ARGV[i], ARGV[i + 1]) <= 0 then
    redis.call('HDEL', apiKeyTasks, ARGV[i])
  end
end
redis.call('HINCRBY', totals, 'drift', 1)
return 1
