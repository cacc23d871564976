#!lua flags=allow-oom
-- Claims entries of a group's outbox, so that one process at a time delivers each of them. Takes time in proportion to their number.
--
-- If the group is cancelled, its members that no process has claimed are not enqueued: they end as cancelled in this script, and what
-- follows them in the outbox is claimed instead. An entry that a process has claimed may already be enqueued, so it is returned.
--
-- KEYS  meta, members, queues, requests, outbox
-- ARGV  id
-- ARGV  channel  where the end of a group is published
-- ARGV  limit    the maximum number of entries
-- ARGV  idleMs   after how long a claim counts as left, or '' to claim only fresh entries
-- ARGV  cursor   the cursor of the previous page, or '0-0'
--
-- Returns `[fresh: number, cursor: string, entries: Array<[id: string, text: string]>, result: GroupResult | '']`: how many of the
-- entries no process had claimed before, where to look next ('0-0' if there are no more), the entries, and the result of the group if
-- this call has ended it.
--- @type GroupResult from @bullpen/contract

-- The consumer group of each outbox, and its only consumer. A claim is told apart by its age, not by its process.
local GROUP, CONSUMER = 'forwarders', 'forwarder'
-- How many pages of a cancelled group's members one call ends at most. They take about 10 µs each.
local PAGES_AT_ONCE = 10
--- @include group

if redis.call('EXISTS', outbox) == 0 then
  return { 0, '0-0', {}, '' }
end
local state, cancelled = unpack(redis.call('HMGET', meta, 'state', 'cancelledAt'))
local entries, fresh, next_cursor, result = {}, 0, '0-0', nil

local function read()
  return redis.pcall('XREADGROUP', 'GROUP', GROUP, CONSUMER, 'COUNT', limit, 'STREAMS', outbox, '>')
end

local function read_fresh()
  local found = read()
  -- The consumer group is deleted together with an empty outbox.
  if found and found.err then
    redis.call('XGROUP', 'CREATE', outbox, GROUP, '0')
    found = read()
  end
  if found and found.err then
    error(found.err)
  end
  return found and found[1][2] or {}
end

local function is_skipped(entry)
  local text = entry[2][2]
  if not cancelled or string.sub(text, 1, 1) ~= 'm' then
    return false
  end
  if state ~= 'ended' then
    end_member(string.match(text, '^m %S+ (%d+) '), 'x')
  end
  redis.call('XACK', outbox, GROUP, entry[1])
  redis.call('XDEL', outbox, entry[1])
  redis.call('HINCRBY', meta, 'outboxBytes', -#text)
  return true
end

for _ = 1, cancelled and PAGES_AT_ONCE or 1 do
  local page = read_fresh()
  fresh = #page
  for _, entry in ipairs(page) do
    if not is_skipped(entry) then
      entries[#entries + 1] = { entry[1], entry[2][2] }
    end
  end
  if fresh == 0 or #entries > 0 then
    break
  end
end
if cancelled then
  result = end_if_complete(millis())
end

if idleMs ~= '' then
  local left = redis.call('XAUTOCLAIM', outbox, GROUP, CONSUMER, idleMs, cursor, 'COUNT', limit)
  next_cursor = left[1]
  for _, entry in ipairs(left[2]) do
    -- An entry that was deleted while it was claimed has no fields.
    if entry[2] then
      entries[#entries + 1] = { entry[1], entry[2][2] }
    end
  end
end
return { fresh, next_cursor, entries, result or '' }
