// Corrects the stored sums of a queue's unfinished tasks.
import { defineScript } from '../script.ts'

/**
 * - KEYS: `totals`, and the tasks of API keys.
 * - ARGV: `drift`, the number of repairs when the sums were read; `bytes`, what to add to the sum of the bytes; then, for each API key
 *   whose count is wrong, the key's name and what to add to its count.
 *
 * Returns 1, and counts one repair in `drift`. If anything was repaired since the sums were read, changes nothing and returns 0,
 * because the same correction may have been made. O(1) for each API key.
 */
export const correctSums = defineScript({
  name: 'correct-sums',
  kind: 'frees',
  keys: ['totals', 'apiKeyTasks'],
  args: ['drift', 'bytes'],
  lua: `
if tonumber(redis.call('HGET', totals, 'drift') or '0') ~= tonumber(drift) then return 0 end
redis.call('HINCRBY', totals, 'bytes', bytes)
for i = 3, #ARGV, 2 do
  if redis.call('HINCRBY', apiKeyTasks, ARGV[i], ARGV[i + 1]) <= 0 then redis.call('HDEL', apiKeyTasks, ARGV[i]) end
end
redis.call('HINCRBY', totals, 'drift', 1)
return 1
`,
  answer: Number,
})
