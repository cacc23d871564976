#!lua flags=allow-oom
-- Deletes the entries of unique keys that no task has any more. Examining 500 entries takes Redis about 1 ms. Outdated entries do no harm
-- except that they take memory.
--
-- KEYS[1]  leader      the highest fencing number of the queue's leaders
-- KEYS[2]  uniqueKeys  the entries
-- ARGV[1]  fencing     the leader's fencing number
-- ARGV[2]  base        the prefix of the queue's keys
-- ARGV[3]  cursor      that of HSCAN ('0' at first)
-- ARGV[4]  limit       about how many entries to examine
--
-- Returns `[next: string, seen: number, removed: number] | null`: the next cursor ('0' after the last page), and how many entries were
-- examined and deleted. Null if there is a newer leader.
local leader, uniqueKeys = KEYS[1], KEYS[2]
local fencing, base, cursor, limit = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
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
