#!lua flags=no-writes
-- Finds the dead tasks in one page that are not in the index of fingerprints.
--
-- KEYS  dead
-- ARGV  base
-- ARGV  cursor  that of ZSCAN ('0' at first)
-- ARGV  count   about how many tasks to examine
--
-- Returns `[next: string, tasks: Array<[id: string, reason: string, stacktrace: string]>]`: the next cursor ('0' after the last page), and
-- of each task, what BullMQ stores as the reason of its failure, and its stacks.
local page = redis.call('ZSCAN', dead, cursor, 'COUNT', count)
local found = {}
for i = 1, #page[2], 2 do
  local id = page[2][i]
  local fields = redis.call('HMGET', base .. id, 'fingerprint', 'failedReason', 'stacktrace')
  if not fields[1] then
    found[#found + 1] = { id, fields[2] or '', fields[3] or '' }
  end
end
return { page[1], found }
