#!lua flags=no-writes
-- Reads one fleet command, or one page of the newest commands.
--
-- KEYS  commands, heartbeats
-- ARGV  base
-- ARGV  id      the command, or '' for a page
-- ARGV  before  the position before which the page begins ('+inf' at first)
-- ARGV  limit   how many commands the page has
--
-- Returns `[now: string, last: string, ...commands: Array<[id: string, fields: string[], seen: string[]]>]`: the time in ms since 1970,
-- the position of the last command ('' if there was none), and for each command its id, its fields with their values, and each
-- worker whose response is pending with its last heartbeat ('0' if the worker was forgotten).
--- @include time

local ids = { id, '' }
if id == '' then
  ids = redis.call('ZREVRANGEBYSCORE', commands, before, '-inf', 'WITHSCORES', 'LIMIT', 0, limit)
end
local found = { whole(millis()), ids[#ids] or '' }
for at = 1, #ids, 2 do
  local fields = redis.call('HGETALL', base .. 'command:' .. ids[at])
  if #fields > 0 then
    local seen = {}
    for i = 1, #fields, 2 do
      local worker = fields[i + 1] == 'pending' and string.match(fields[i], '^response:(.*)$')
      if worker then
        seen[#seen + 1] = worker
        seen[#seen + 1] = redis.call('ZSCORE', heartbeats, worker) or '0'
      end
    end
    found[#found + 1] = { ids[at], fields, seen }
  end
end
return found
