#!lua flags=no-writes
-- Reads one page of the registered workers. A worker that is registered throughout the scan is on at least one page.
--
-- KEYS[1]  heartbeats  the workers by their last heartbeat
-- ARGV[1]  base        the prefix of the fleet's keys
-- ARGV[2]  silence     after how long without a heartbeat a worker is forgotten, in ms
-- ARGV[3]  slots       'slots' to read the slots as well, or ''
-- ARGV[4]  cursor      the cursor of ZSCAN ('0' at first)
-- ARGV[5]  count       about how many workers to read
--
-- Returns `[next: string, now: string, ...workers: string[]]`: the next cursor ('0' after the last page), the time in ms since 1970,
-- and for each worker its id, its last heartbeat, its status, and its slots or ''.
local heartbeats = KEYS[1]
local base, silence, slots, cursor, count = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
--- @include time

local now = millis()
local page = redis.call('ZSCAN', heartbeats, cursor, 'COUNT', count)
local found = { page[1], whole(now) }
for i = 1, #page[2], 2 do
  local id, seenAt = page[2][i], page[2][i + 1]
  if tonumber(seenAt) > now - tonumber(silence) then
    local worker = redis.call('HMGET', base .. 'worker:' .. id, 'status', slots)
    if worker[1] then
      for _, value in ipairs({ id, seenAt, worker[1], worker[2] or '' }) do
        found[#found + 1] = value
      end
    end
  end
end
return found
