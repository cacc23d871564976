// Finds the entries in one page for which the status index differs from BullMQ's sets.
import { LUA_PARTS } from '../../internals/status/status-index.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: `place`, the sorted set to scan: a divided set or one of its parts.
 * - ARGV: `base`, the prefix of the queue's keys; `set`, the divided set's name without the prefix; `cursor`, '0' for the first
 *   page; `count`, the approximate number of members to examine.
 *
 * Returns the next cursor ('0' after the last page), and then four values for each entry that is wrong: the task's id, its score
 * in the divided set, and its fields `atm` and `stacktrace`. An entry of a divided set is right only if exactly one part contains
 * it, with the same score. An entry of a part is wrong if the divided set doesn't have it; the other three values are then ''.
 *
 * Examines every member that is in the place throughout the scan. Takes one command for each member and part.
 */
export const findDrift = defineScript({
  name: 'find-drift',
  kind: 'reads',
  keys: ['place'],
  args: ['base', 'set', 'cursor', 'count'],
  lua: `
local parts, divided = ({ ${LUA_PARTS} })[base .. set], base .. set
local page = redis.call('ZSCAN', place, cursor, 'COUNT', count)
local found = { page[1] }

local function report(id, score, attempts, stacks)
  local at = #found
  found[at + 1], found[at + 2], found[at + 3], found[at + 4] = id, score, attempts or '', stacks or ''
end

for i = 1, #page[2], 2 do
  local id, score = page[2][i], tonumber(page[2][i + 1])
  if place ~= divided then
    if not redis.call('ZSCORE', divided, id) then report(id, '') end
  else
    local holders, isSame = 0, false
    for _, part in ipairs(parts) do
      local inPart = redis.call('ZSCORE', part, id)
      if inPart then
        holders = holders + 1
        isSame = tonumber(inPart) == score
      end
    end
    if holders ~= 1 or not isSame then
      local fields = redis.call('HMGET', base .. id, 'atm', 'stacktrace')
      report(id, redis.call('ZSCORE', divided, id), fields[1], fields[2])
    end
  end
end
return found
`,
  answer: (reply) => {
    const [cursor, ...found] = reply as [string, ...string[]]
    return { cursor, found }
  },
})
