#!lua flags=no-writes
-- Detects whether Bullpen 0.1.0 wrote a queue. That version stored no schema version, so its data is recognised by keys that only it
-- wrote, or by one of its jobs at either end of a place. Examines at most twelve jobs.
--
-- KEYS  switches     a key that only 0.1.0 wrote
-- KEYS  cancelFeeds  another one
-- KEYS  wait, active, prioritized, delayed, completed, failed
-- ARGV  base         the prefix of jobs
-- ARGV  backoffType  the type of backoff in the options of Bullpen's jobs
--
-- Returns `0 | 1`
if redis.call('EXISTS', switches, cancelFeeds) > 0 then
  return 1
end
local function is_legacy(id)
  local job = redis.call('HMGET', base .. id, 'data', 'opts')
  return job[1]
    and job[2]
    and string.sub(job[1], 1, 7) == '{"v":1,'
    and string.find(job[2], '"type":"' .. backoffType .. '"', 1, true)
end
for _, at in ipairs({ 0, -1 }) do
  for _, list in ipairs({ wait, active }) do
    local id = redis.call('LINDEX', list, at)
    if id and is_legacy(id) then
      return 1
    end
  end
  for _, set in ipairs({ prioritized, delayed, completed, failed }) do
    local id = redis.call('ZRANGE', set, at, at)[1]
    if id and is_legacy(id) then
      return 1
    end
  end
end
return 0
