// Finds the concurrency keys with the longest lanes among some of a queue's lanes.
import { listOf, prioritiesOf } from '../../internals/turns/lanes.ts'
import { splitName } from '../../internals/turns/limiters/needs.ts'
import { IS_AFTER } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

export interface RankedKey {
  readonly key: string
  readonly count: number
}

export interface RankedLanes {
  readonly keys: readonly RankedKey[]
  /** The number of the last lane that was examined, or undefined if no more lanes follow. */
  readonly last: string | undefined
}

/**
 * - KEYS: `lanes`.
 * - ARGV: the prefix of the queue's keys, the number of the lane after which to begin ('' to begin with the first one), how
 *   many lanes to examine, the number of tasks and the key of the last lane of the previous page, and those of the last lane
 *   that has a place on this page ('' for each that does not exist).
 *
 * Returns the lanes between these two in the order of a listing, not sorted: the longest lane comes first, and lanes of the
 * same length are in the descending order of their keys. A key whose tasks have different needs has several lanes, so it may
 * occur several times. Takes two commands for each lane.
 */
export const rankLanes = defineScript({
  name: 'rank-lanes',
  kind: 'reads',
  keys: ['lanes'],
  args: ['base', 'after', 'scan', 'fromCount', 'fromKey', 'lastCount', 'lastKey'],
  lua: `${IS_AFTER}
scan, fromCount, lastCount = tonumber(scan), tonumber(fromCount), tonumber(lastCount)
local function precedes(count, key, other, other_key)
  if count ~= other then return count > other end
  return is_after(key, other_key)
end
local first = after == '' and '-inf' or '(' .. after
local page = redis.call('ZRANGEBYSCORE', lanes, first, '+inf', 'WITHSCORES', 'LIMIT', 0, scan)
local found = {}
for i = 1, #page, 2 do
  local lane = page[i]
  ${splitName('lane')}
  local count = redis.call('LLEN', ${listOf('lane')}) + redis.call('ZCARD', ${prioritiesOf('lane')})
  local is_behind = key ~= '' and (not fromCount or precedes(fromCount, fromKey, count, key))
  if is_behind and (not lastCount or precedes(count, key, lastCount, lastKey)) then
    found[#found + 1] = key
    found[#found + 1] = count
  end
end
return { found, #page == 2 * scan and page[#page] or '' }
`,
  answer(reply): RankedLanes {
    const [found, last] = reply as [(string | number)[], string]
    return { keys: pairsOf(found), last: last === '' ? undefined : last }
  },
})

/** Returns the pairs of a key and a number in a flat list. */
export function pairsOf(flat: readonly (string | number)[]): RankedKey[] {
  return Array.from({ length: flat.length / 2 }, (_, i) => ({
    key: String(flat[2 * i]),
    count: Number(flat[2 * i + 1]),
  }))
}
