#!lua flags=allow-oom
-- Removes the tasks from one fingerprint's set that are not dead any more.
--
-- KEYS  set          the fingerprint's tasks
-- KEYS  dead
-- ARGV  base
-- ARGV  fingerprint  the set's
-- ARGV  cursor       that of ZSCAN ('0' at first)
-- ARGV  count        about how many tasks to examine
--
-- Returns `string`: the next cursor ('0' after the last page).
--- @include fingerprints

local page = redis.call('ZSCAN', set, cursor, 'COUNT', count)
for i = 1, #page[2], 2 do
  local id = page[2][i]
  if redis.call('ZSCORE', dead, id) ~= page[2][i + 1] then
    leave_fingerprint(base, id, fingerprint)
    redis.call('HDEL', base .. id, 'fingerprint')
  end
end
if redis.call('EXISTS', set) == 0 then
  redis.call('HDEL', base .. 'fingerprints', fingerprint)
end
return page[1]
