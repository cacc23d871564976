#!lua
-- Creates a group. If the group exists, nothing changes.
--
-- KEYS[1]  meta     the fields of the group
-- ARGV[1]  by       who creates it
-- ARGV[2]  onError  what happens on the first error
-- ARGV[3]  totalMs  its total timeout
-- ARGV[4]  keepMs   how long it is kept after its end
-- ARGV[5]  spareMs  for how long after its timeout an unfinished group is kept
-- ARGV[6]  lines    the lines of its follow-ups, or ''
-- ARGV[7]  digest   a digest of its settings
--
-- Returns `string[] | 'reused'`: the fields of the group, or 'reused' if it was created with other settings.
local meta = KEYS[1]
local by, onError, totalMs, keepMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local spareMs, lines, digest = ARGV[5], ARGV[6], ARGV[7]
--- @include time

if redis.call('EXISTS', meta) == 0 then
  local now = millis()
  redis.call('HSET', meta, 'state', 'open', 'by', by, 'onError', onError, 'keepMs', keepMs, 'digest', digest)
  redis.call('HSET', meta, 'createdAt', whole(now), 'timeoutAt', whole(now + totalMs), 'count', 0, 'ended', 0)
  if lines ~= '' then
    redis.call('HSET', meta, 'lines', lines)
  end
  redis.call('PEXPIRE', meta, whole(totalMs + spareMs))
else
  local known = redis.call('HGET', meta, 'digest')
  if known and known ~= digest then
    return 'reused'
  end
end
return redis.call('HGETALL', meta)
