// Counts the bytes of the tasks that have not ended, page by page, and corrects the sum in a queue's totals.
import { TASK_OVERHEAD_BYTES } from '@bullpen/engine/internal'
import { defineScript } from '../script.ts'

/** The position that a recount has reached. */
export interface RecountPosition {
  /** The number of the list or set among the script's keys, from 1. */
  readonly place: number
  /** The number of its tasks that have been counted. */
  readonly passed: number
  /** The bytes of all tasks that have been counted. */
  readonly sum: number
}

export interface RecountedPage {
  /** 1 if the sum was wrong and has been corrected, otherwise 0. */
  readonly corrected: number
  /** Where the recount continues, or undefined at its end. */
  readonly next: RecountPosition | undefined
}

/**
 * - KEYS: the places of tasks that have not ended, in the order in which they are counted, and `totals`.
 * - ARGV: `base`, the prefix of the queue's keys; the {@link RecountPosition}; `limit`, the number of tasks to examine; `tolerance`,
 *   from 0 to 1.
 *
 * Returns a {@link RecountedPage}. Takes Redis about 0.4 µs for each task.
 *
 * If one page holds all tasks, the recount is exact. Otherwise, tasks may move between two pages. Lists and sets are read in the
 * order in which tasks leave them. If a counted task is fetched and ends, the next page begins one task later, so that another
 * task is skipped instead, and the sum stays approximately right. If the sum differs from the stored one by at most `tolerance`,
 * the two are therefore considered equal. A correction counts as one repair in `drift`.
 */
export const recountBytesScript = defineScript({
  name: 'recount-bytes',
  kind: 'frees',
  keys: ['active', 'waitingChildren', 'delayed', 'prioritized', 'wait', 'totals'],
  args: ['base', 'place', 'passed', 'sum', 'limit', 'tolerance'],
  lua: `
local is_list = { [active] = true, [wait] = true }
local at, passed, sum, left = tonumber(place), tonumber(passed), tonumber(sum), tonumber(limit)
local is_exact = at == 1 and passed == 0
while KEYS[at] ~= totals and left > 0 do
  local key, ids = KEYS[at], nil
  -- Tasks leave a list at its right end, and a set at its beginning.
  if is_list[key] then ids = redis.call('LRANGE', key, -passed - left, -passed - 1)
  else ids = redis.call('ZRANGE', key, passed, passed + left - 1) end
  for _, id in ipairs(ids) do sum = sum + redis.call('HSTRLEN', base .. id, 'data') + ${TASK_OVERHEAD_BYTES} end
  if #ids < left then at, passed = at + 1, 0 else passed = passed + left end
  left = left - #ids
end
if KEYS[at] ~= totals then return { 0, at, passed, sum } end
local found = tonumber(redis.call('HGET', totals, 'bytes') or '0')
local tolerated = is_exact and 0 or tolerance * math.max(found, sum)
if math.abs(found - sum) <= tolerated then return { 0 } end
redis.call('HSET', totals, 'bytes', string.format('%.0f', sum))
redis.call('HINCRBY', totals, 'drift', 1)
return { 1 }
`,
  answer(reply): RecountedPage {
    const [corrected, place, passed = 0, sum = 0] = reply as [number, number?, number?, number?]
    return { corrected, next: place === undefined ? undefined : { place, passed, sum } }
  },
})
