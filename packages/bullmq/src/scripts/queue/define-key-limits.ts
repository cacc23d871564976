// Stores the limits of concurrency keys that the catalogue of a worker contains.
import { DERIVE_KEY_LIMITS } from '../../internals/turns/derive-key-limits.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: settings.
 * - ARGV: the prefix of the queue's keys, the limits as JSON, '1' to replace other limits, '' to store only missing ones.
 *
 * Limits that were removed are stored as an empty object, so that an older worker does not store its own again.
 */
export const defineKeyLimitsScript = defineScript({
  name: 'define-key-limits',
  kind: 'frees',
  keys: ['settings'],
  args: ['base', 'limits', 'replaces'],
  lua: `
local stored = redis.call('HGET', settings, 'definedKeyLimits')
if stored == limits or not stored and limits == '{}' or stored and replaces == '' then return end
redis.call('HSET', settings, 'definedKeyLimits', limits)
${DERIVE_KEY_LIMITS}
derive_key_limits(base)
`,
})
