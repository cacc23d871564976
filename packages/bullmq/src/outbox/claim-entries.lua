#!lua flags=allow-oom
-- Claims entries of an outbox, so that one process at a time delivers each of them. O(entries).
--
-- KEYS  outbox
-- ARGV  limit   the most fresh entries to claim, and also the most that other processes have left
-- ARGV  idleMs  after how long a claim counts as left, in ms, or '' to claim only fresh entries
-- ARGV  cursor  that of the previous page, or '0-0'
--
-- Returns `[fresh: number, cursor: string, entries: Array<[id: string, text: string]>]`: how many of the entries no process had claimed
-- before, and where to look next for entries that another process has left ('0-0' if there are no more).
--- @include outbox-claims

if redis.call('EXISTS', outbox) == 0 then
  return { 0, '0-0', {} }
end
local entries = claim_fresh(limit)
local fresh, next_cursor, left = #entries, '0-0', {}
if idleMs ~= '' then
  next_cursor, left = claim_left(idleMs, cursor, limit)
end
for _, entry in ipairs(left) do
  entries[#entries + 1] = entry
end
return { fresh, next_cursor, entries }
