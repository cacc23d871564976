// Stores the limits that the catalogue of a worker contains: those of concurrency keys, and the capacities of limiters.
import { DERIVE_LIMITS } from '../../internals/turns/derive-limits.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: settings.
 * - ARGV: the prefix of the queue's keys, the limits of keys and the capacities as JSON, '1' to replace others, '' to store
 *   only missing ones.
 *
 * Limits that were removed are stored as an empty object, so that an older worker does not store its own again.
 */
export const defineLimitsScript = defineScript({
  name: 'define-limits',
  kind: 'frees',
  keys: ['settings'],
  args: ['base', 'keyLimits', 'capacities', 'replaces'],
  lua: `
local has_changed = false
local function define(name, defined)
  local stored = redis.call('HGET', settings, name)
  if stored == defined or not stored and defined == '{}' or stored and replaces == '' then return end
  redis.call('HSET', settings, name, defined)
  has_changed = true
end
define('definedKeyLimits', keyLimits)
define('definedCapacities', capacities)
if has_changed then${DERIVE_LIMITS}
  derive_limits(base)
end
`,
})
