// Releases a namespace leader's lease.
import { defineScript } from '../script.ts'

/**
 * - KEYS: lease.
 * - ARGV: the caller, the leader's channel.
 *
 * Returns nothing. If the caller holds the lease, the script announces on the channel that the namespace has no leader.
 */
export const resignScript = defineScript({
  name: 'resign',
  kind: 'frees',
  keys: ['lease'],
  args: ['holder', 'channel'],
  lua: `
if redis.call('GET', lease) ~= holder then return end
redis.call('DEL', lease)
redis.call('PUBLISH', channel, '')
`,
})
