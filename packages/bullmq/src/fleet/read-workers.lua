#!lua flags=no-writes
-- Reads one page of the registered workers. A worker that is registered throughout the scan is on at least one page.
--
-- KEYS  heartbeats
-- ARGV  base
-- ARGV  silence  after how long without a heartbeat a worker is forgotten, in ms
-- ARGV  slots    'slots' to read the slots as well, or ''
-- ARGV  cursor   the cursor of ZSCAN ('0' at first)
-- ARGV  count    about how many workers to read
--
-- Returns `[next: string, now: string, ...workers: string[]]`: the next cursor ('0' after the last page), the time in ms since 1970,
-- and for each worker its id, its last heartbeat, its status, and its slots or ''.
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
