// Records that a consumer has read a cancel rule.
import { defineScript } from '../script.ts'

/**
 * - KEYS: the consumers that know the rule.
 * - ARGV: this consumer, how long to keep the set (ms).
 *
 * Returns nothing.
 */
export const acknowledgeRule = defineScript({
  name: 'acknowledge-rule',
  kind: 'frees',
  keys: ['known'],
  args: ['consumer', 'keepMs'],
  lua: `
redis.call('SADD', known, consumer)
redis.call('PEXPIRE', known, keepMs)
`,
})
