// Counts the active tasks of each concurrency key among some of a queue's active tasks.
import { nameIn } from '../../internals/turns/lanes.ts'
import { splitName } from '../../internals/turns/limiters/needs.ts'
import { defineScript } from '../script.ts'
import { pairsOf, type RankedKey } from './rank-lanes.ts'

/**
 * - KEYS: `active`.
 * - ARGV: the prefix of the queue's keys, how many tasks to pass over from the right end of the list, how many tasks to examine.
 *
 * Takes one command for each task.
 */
export const countActiveLanes = defineScript({
  name: 'count-active-lanes',
  kind: 'reads',
  keys: ['active'],
  args: ['base', 'passed', 'scan'],
  lua: `
local counts, found = {}, {}
for _, id in ipairs(redis.call('LRANGE', active, -passed - scan, -passed - 1)) do
  local lane = redis.call('HGET', base .. id, 'lane')
  if lane then
    ${splitName(nameIn('lane'))}
    if key ~= '' then counts[key] = (counts[key] or 0) + 1 end
  end
end
for key, count in pairs(counts) do
  found[#found + 1] = key
  found[#found + 1] = count
end
return found
`,
  answer: (reply): readonly RankedKey[] => pairsOf(reply as (string | number)[]),
})
