// Returns when the first lock of a queue's marked tasks expires.
import { defineScript } from '../script.ts'

/**
 * - KEYS: BullMQ's set of the active tasks that are marked because their locks have not been renewed since the last check.
 * - ARGV: the prefix of the queue's keys.
 *
 * Returns the time until the first lock of these tasks expires, in ms, or undefined if none of them has a lock. O(marked tasks).
 */
export const soonestLockExpiry = defineScript({
  name: 'soonest-lock-expiry',
  kind: 'reads',
  keys: ['stalled'],
  args: ['base'],
  lua: `
local soonest
for _, id in ipairs(redis.call('SMEMBERS', stalled)) do
  local left = redis.call('PTTL', base .. id .. ':lock')
  if left >= 0 and (not soonest or left < soonest) then soonest = left end
end
return soonest
`,
  answer: (reply): number | undefined => (reply as number | null) ?? undefined,
})
