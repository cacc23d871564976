-- outbox_span(outbox) returns the current time, or the time of the newest entry if the clock was set back, and when the oldest entry of an
-- outbox was written, both in ms since 1970 by the clock of its node. The second is missing if the outbox is empty.
--- @include time

local function written_at(entries)
  return entries[1] and tonumber(string.match(entries[1][1], '^%d+'))
end

local function outbox_span(outbox)
  local oldest = written_at(redis.call('XRANGE', outbox, '-', '+', 'COUNT', 1))
  local newest = written_at(redis.call('XREVRANGE', outbox, '+', '-', 'COUNT', 1))
  return { math.max(millis(), newest or 0), oldest }
end
