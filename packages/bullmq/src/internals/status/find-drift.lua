#!lua flags=no-writes
-- Finds the entries in one page for which the status index differs from BullMQ's sets. An entry of a divided set is right only if exactly
-- one part contains it, with the same score. An entry of a part is wrong if the divided set does not have it. Examines every member that
-- is in the place throughout the scan. Takes one command for each member and part.
--
-- KEYS  place    the sorted set to scan: the divided set or one of its parts
-- KEYS  divided  the divided set
-- ARGV  base
-- ARGV  parts    the names of the parts, separated by blanks
-- ARGV  cursor   that of ZSCAN ('0' at first)
-- ARGV  count    about how many members to examine
--
-- Returns `[next: string, ...entries: string[]]`: the next cursor ('0' after the last page), and for each entry that is wrong, the task's
-- id, its score in the divided set, and its fields `atm` and `stacktrace`. If the divided set does not have it, these three are ''.
local page = redis.call('ZSCAN', place, cursor, 'COUNT', count)
local found = { page[1] }

local function report(id, score, attempts, stacks)
  for _, value in ipairs({ id, score, attempts or '', stacks or '' }) do
    found[#found + 1] = value
  end
end

local function is_indexed(id, score)
  local holders, is_same = 0, false
  for part in string.gmatch(parts, '%S+') do
    local in_part = redis.call('ZSCORE', base .. part, id)
    if in_part then
      holders = holders + 1
      is_same = tonumber(in_part) == tonumber(score)
    end
  end
  return holders == 1 and is_same
end

for i = 1, #page[2], 2 do
  local id, score = page[2][i], page[2][i + 1]
  if place ~= divided then
    if not redis.call('ZSCORE', divided, id) then
      report(id, '')
    end
  elseif not is_indexed(id, score) then
    local attempts, stacks = unpack(redis.call('HMGET', base .. id, 'atm', 'stacktrace'))
    report(id, redis.call('ZSCORE', divided, id), attempts, stacks)
  end
end
return found
