#!lua flags=allow-oom
-- Removes the tasks from one fingerprint's set that are not dead any more.
--
-- KEYS[1]  set          the fingerprint's tasks
-- KEYS[2]  dead         the dead tasks
-- ARGV[1]  base         the prefix of the queue's keys
-- ARGV[2]  fingerprint  the set's
-- ARGV[3]  cursor       that of ZSCAN ('0' at first)
-- ARGV[4]  count        about how many tasks to examine
--
-- Returns `string`: the next cursor ('0' after the last page).
local set, dead = KEYS[1], KEYS[2]
local base, fingerprint, cursor, count = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
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
