#!lua flags=allow-oom
-- Claims entries of an outbox, so that one process at a time delivers each of them. An old claim counts as left, whichever process made it,
-- so an outbox has one consumer group with one consumer. O(entries).
--
-- KEYS  outbox
-- ARGV  limit   how many fresh entries are claimed at most, and how many that were left
-- ARGV  idleMs  after how long a claim counts as left, in ms, or '' to claim only fresh entries
-- ARGV  cursor  that of the previous page, or '0-0'
--
-- Returns `[fresh: number, cursor: string, entries: Array<[id: string, text: string]>]`: how many of the entries no process had claimed
-- before, and where to look next for entries that another process has left ('0-0' if there are no more).
if redis.call('EXISTS', outbox) == 0 then
  return { 0, '0-0', {} }
end
local entries = {}
local function add(found)
  for _, entry in ipairs(found) do
    -- An entry that was deleted while it was claimed has no fields.
    if entry[2] then
      entries[#entries + 1] = { entry[1], entry[2][2] }
    end
  end
end
local function read()
  return redis.pcall('XREADGROUP', 'GROUP', 'forwarders', 'forwarder', 'COUNT', limit, 'STREAMS', outbox, '>')
end

local fresh = read()
-- The group is deleted together with an empty outbox.
if fresh and fresh.err then
  redis.call('XGROUP', 'CREATE', outbox, 'forwarders', '0')
  fresh = read()
end
if fresh and fresh.err then
  return fresh
end
if fresh then
  add(fresh[1][2])
end
local number, next_cursor = #entries, '0-0'
if idleMs ~= '' then
  local left = redis.call('XAUTOCLAIM', outbox, 'forwarders', 'forwarder', idleMs, cursor, 'COUNT', limit)
  next_cursor = left[1]
  add(left[2])
end
return { number, next_cursor, entries }
