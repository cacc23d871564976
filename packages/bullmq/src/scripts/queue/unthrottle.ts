// Removes the placeholder rate of a throttle that has ended, because that rate would otherwise cost two commands per job.
import { defineScript } from '../script.ts'

/**
 * - KEYS: limiter, meta.
 * - ARGV: the mark of a throttle.
 *
 * Returns nothing. A throttle that has not ended is not changed.
 */
export const unthrottle = defineScript({
  name: 'unthrottle',
  kind: 'frees',
  keys: ['limiter', 'meta'],
  args: ['mark'],
  lua: `
if redis.call('HGET', meta, 'max') == mark and redis.call('GET', limiter) ~= mark then
  redis.call('HDEL', meta, 'max', 'duration')
end
`,
})
