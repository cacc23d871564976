// Repairs entries of the status index, and counts them.
import { LUA_PARTS } from '../../internals/status/status-index.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: `divided`, the divided set; `totals`.
 * - ARGV: `base`, the prefix of the queue's keys; then, for each entry, the task's id, its score in the divided set when the
 *   entry was found ('' if it was not in the set), and the part that it belongs to ('' for none).
 *
 * Returns the number of entries that were repaired, which the script also adds to the field `drift` of the totals. An entry is
 * skipped if its score has changed since it was found: either the script that moved the task has indexed it, or the next pass
 * repairs it. An entry that another process has already repaired is not counted again.
 */
export const repairEntries = defineScript({
  name: 'repair-entries',
  kind: 'frees',
  keys: ['divided', 'totals'],
  args: ['base'],
  lua: `
local parts, repaired = ({ ${LUA_PARTS} })[divided], 0
for i = 2, #ARGV, 3 do
  local id, score, part = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  if (redis.call('ZSCORE', divided, id) or '') == score then
    local changed = 0
    for _, each in ipairs(parts) do
      if each ~= base .. part then changed = changed + redis.call('ZREM', each, id) end
    end
    if part ~= '' then changed = changed + redis.call('ZADD', base .. part, 'CH', score, id) end
    if changed > 0 then repaired = repaired + 1 end
  end
end
if repaired > 0 then redis.call('HINCRBY', totals, 'drift', repaired) end
return repaired
`,
  answer: Number,
})
