// Stores the schema version of a new namespace.
import { defineScript } from '../script.ts'

/**
 * Stores the current version, unless the namespace already has a version or holds data of 0.1.0.
 *
 * - KEYS: the schema key, a key that only 0.1.0 wrote.
 * - ARGV: the current version, '1' if 0.1.0 wrote one of the queues.
 *
 * Returns the version of the namespace.
 */
export const claimNamespace = defineScript({
  name: 'claim-namespace',
  kind: 'adds',
  keys: ['schema', 'legacyFleet'],
  args: ['version', 'hasLegacyQueue'],
  lua: `
local stored = redis.call('GET', schema)
if stored then return stored end
if hasLegacyQueue == '1' or redis.call('EXISTS', legacyFleet) == 1 then return '1' end
redis.call('SET', schema, version)
return version
`,
  answer: (reply) => reply as string,
})
