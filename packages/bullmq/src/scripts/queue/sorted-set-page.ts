// Reads one page of a sorted set, beginning after a task that may have left the set in the meantime.
import { defineScript } from '../script.ts'

export interface ScoredId {
  readonly id: string
  readonly score: number
}

/**
 * - KEYS: the set.
 * - ARGV: the score and the id of the task after which the page begins ('' for both to begin at the start), and how many tasks to
 *   read.
 *
 * Returns that many tasks with their scores, or fewer at the end of the set.
 *
 * Redis orders the members of a sorted set by score, and members with the same score by their bytes. The page begins after the
 * place that the given task has in this order, whether or not the task is still there. The page therefore contains exactly the
 * tasks that follow, whatever has been added to or removed from the set in the meantime.
 *
 * The place is found by a binary search among the tasks with the same score. It takes O((log n)²) steps for n tasks, which are
 * seventeen reads of one task each if 100,000 tasks have the same score.
 */
export const sortedSetPage = defineScript({
  name: 'sorted-set-page',
  kind: 'reads',
  keys: ['set'],
  args: ['score', 'last', 'limit'],
  lua: `
-- Redis compares bytes, whereas Lua's own comparison may follow the locale of the server.
local function is_after(id, other)
  for at = 1, math.min(#id, #other) do
    local byte, of_other = string.byte(id, at), string.byte(other, at)
    if byte ~= of_other then return byte > of_other end
  end
  return #id > #other
end
local first = 0
if last ~= '' then
  first = redis.call('ZCOUNT', set, '-inf', '(' .. score)
  local beyond = first + redis.call('ZCOUNT', set, score, score)
  while first < beyond do
    local middle = math.floor((first + beyond) / 2)
    if is_after(redis.call('ZRANGE', set, middle, middle)[1], last) then beyond = middle else first = middle + 1 end
  end
end
return redis.call('ZRANGE', set, first, first + limit - 1, 'WITHSCORES')
`,
  answer(reply): ScoredId[] {
    const flat = reply as string[]
    return Array.from({ length: flat.length / 2 }, (_, i) => ({
      id: flat[2 * i] ?? '',
      score: Number(flat[2 * i + 1]),
    }))
  },
})
