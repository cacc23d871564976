#!lua
-- Creates a group. If the group exists, nothing changes.
--
-- KEYS  meta
-- ARGV  by       who creates it
-- ARGV  onError  what happens on the first error
-- ARGV  totalMs  its total timeout
-- ARGV  keepMs   how long it is kept after its end
-- ARGV  spareMs  for how long after its timeout an unfinished group is kept
-- ARGV  lines    the lines of its follow-ups, or ''
-- ARGV  digest   a digest of its settings
--
-- Returns `[fields: string[], isNew: number] | 'reused'`: the fields of the group, and 1 if this call has created it and otherwise 0; or
-- 'reused' if it was created with other settings.
--- @include time

local is_new = redis.call('EXISTS', meta) == 0
if is_new then
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
return { redis.call('HGETALL', meta), is_new and 1 or 0 }
