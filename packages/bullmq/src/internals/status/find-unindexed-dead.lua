#!lua flags=no-writes
-- Finds the dead tasks in one page that are not in the index of fingerprints.
--
-- KEYS[1]  dead    the dead tasks
-- ARGV[1]  base    the prefix of the queue's keys
-- ARGV[2]  cursor  that of ZSCAN ('0' at first)
-- ARGV[3]  count   about how many tasks to examine
--
-- Returns `[next: string, tasks: Array<[id: string, reason: string, stacktrace: string]>]`: the next cursor ('0' after the last page), and
-- of each task, what BullMQ stores as the reason of its failure, and its stacks.
local dead = KEYS[1]
local base, cursor, count = ARGV[1], ARGV[2], ARGV[3]

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
