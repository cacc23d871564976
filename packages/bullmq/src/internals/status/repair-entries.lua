#!lua flags=allow-oom
-- Repairs entries of the status index, and counts them in the field `drift` of the totals. An entry is skipped if its score has changed
-- since it was found: either the script that moved the task has indexed it, or the next pass repairs it. An entry that another process
-- has already repaired is not counted again.
--
-- KEYS  divided  the divided set
-- KEYS  totals
-- ARGV  base
-- ARGV  parts    the names of the set's parts, separated by blanks
-- ARGV[3...]  for each entry, the task's id, its score in the divided set when the entry was found ('' if it was not in the set), and the
--             part that it belongs to ('' for none)
--
-- Returns `number`: how many entries were repaired.
local repaired = 0
for i = 3, #ARGV, 3 do
  local id, score, part = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if (redis.call('ZSCORE', divided, id) or '') == score then
    local changed = 0
    for each in string.gmatch(parts, '%S+') do
      if each ~= part then
        changed = changed + redis.call('ZREM', base .. each, id)
      end
    end
    if part ~= '' then
      changed = changed + redis.call('ZADD', base .. part, 'CH', score, id)
    end
    if changed > 0 then
      repaired = repaired + 1
    end
  end
end
if repaired > 0 then
  redis.call('HINCRBY', totals, 'drift', repaired)
end
return repaired
