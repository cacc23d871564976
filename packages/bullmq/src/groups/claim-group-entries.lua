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

-- How many pages of a cancelled group's members one call ends at most. They take about 10 µs each.
local PAGES_AT_ONCE = 10
--- @include group
--- @include outbox-claims

if redis.call('EXISTS', outbox) == 0 then
  return { 0, '0-0', {}, '' }
end
local state, cancelled = unpack(redis.call('HMGET', meta, 'state', 'cancelledAt'))
local entries, fresh, next_cursor, left, result = {}, 0, '0-0', {}, nil

local function is_skipped(entry)
  local entry_id, text = unpack(entry)
  if not cancelled or string.sub(text, 1, 1) ~= 'm' then
    return false
  end
  if state ~= 'ended' then
    end_member(string.match(text, '^m %S+ (%d+) '), 'x')
  end
  redis.call('XACK', outbox, 'forwarders', entry_id)
  redis.call('XDEL', outbox, entry_id)
  redis.call('HINCRBY', meta, 'outboxBytes', -#text)
  return true
end

for _ = 1, cancelled and PAGES_AT_ONCE or 1 do
  local page = claim_fresh(limit)
  fresh = #page
  for _, entry in ipairs(page) do
    if not is_skipped(entry) then
      entries[#entries + 1] = entry
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
  next_cursor, left = claim_left(idleMs, cursor, limit)
end
for _, entry in ipairs(left) do
  entries[#entries + 1] = entry
end
return { fresh, next_cursor, entries, result or '' }
