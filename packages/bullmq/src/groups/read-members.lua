#!lua flags=no-writes
-- Reads how some members of a group have ended, and to which queues they belong, all as of the same moment.
--
-- KEYS  meta, members, queues
-- ARGV  from   the first member
-- ARGV  limit  how many members to read at most
--
-- Returns `[fields: string[], ends: number[], queues: number[]]`: the fields of the group, none if there is no such group, and for each
-- member the code of its end (0 if it has not ended) and the position of its queue.
local ends, positions = {}, {}
local last = math.min(tonumber(redis.call('HGET', meta, 'count') or 0), from + limit) - 1
for member = from, last do
  local at = string.format('#%.0f', member)
  ends[#ends + 1] = redis.call('BITFIELD_RO', members, 'GET', 'u3', at)[1]
  positions[#positions + 1] = redis.call('BITFIELD_RO', queues, 'GET', 'u4', at)[1]
end
return { redis.call('HGETALL', meta), ends, positions }
