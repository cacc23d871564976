#!lua flags=allow-oom
-- Deletes the entries of unique keys that no task has any more. Examining 500 entries takes Redis about 1 ms. Outdated entries do no harm
-- except that they take memory.
--
-- KEYS  leader, uniqueKeys
-- ARGV  fencing, base
-- ARGV  cursor  that of HSCAN ('0' at first)
-- ARGV  limit   about how many entries to examine
--
-- Returns `[next: string, seen: number, removed: number] | null`: the next cursor ('0' after the last page), and how many entries were
-- examined and deleted. Null if there is a newer leader.
--- @include fence
--- @include key-owner
--- @include time

if is_deposed(leader, fencing) then
  return false
end
local now = millis()
local next_cursor, entries = unpack(redis.call('HSCAN', uniqueKeys, cursor, 'COUNT', limit))
local removed = 0
for i = 1, #entries, 2 do
  if not key_owner(base, entries[i + 1], now) then
    removed = removed + redis.call('HDEL', uniqueKeys, entries[i])
  end
end
return { next_cursor, #entries / 2, removed }
