// Acquires or renews a namespace leader's lease.
import { defineScript } from '../script.ts'

/**
 * - KEYS: lease, fencing, schema.
 * - ARGV: the caller, the duration of the lease in ms, the caller's schema version, and the highest fencing number that the
 *   caller has seen.
 *
 * Returns the caller's fencing number (0 if the caller does not lead), the lease's remaining time in ms, and the fencing number of the
 * newest leader.
 *
 * The number grows with each new leader. If a failover has lost the newest numbers, the lease's holder gets a number above those
 * that the queues have stored. A caller whose schema version is older than the namespace's never leads.
 */
export const takeLeaseScript = defineScript({
  name: 'take-lease',
  kind: 'frees',
  keys: ['lease', 'fencing', 'schema'],
  args: ['holder', 'leaseMs', 'schemaVersion', 'above'],
  lua: `
local newest = tonumber(redis.call('GET', schema) or '0')
local number = tonumber(redis.call('GET', fencing) or '0')
if newest > tonumber(schemaVersion) then return { 0, tonumber(leaseMs), number } end
local current = redis.call('GET', lease)
if current and current ~= holder then return { 0, redis.call('PTTL', lease), number } end
if not current or number <= tonumber(above) then
  number = math.max(number, tonumber(above)) + 1
  redis.call('SET', fencing, string.format('%.0f', number))
end
redis.call('SET', lease, holder, 'PX', leaseMs)
return { number, tonumber(leaseMs), number }
`,
  answer: (reply) => {
    const [fencing, leftMs, newest] = reply as [number, number, number]
    return { fencing, leftMs, newest }
  },
})
