// Reads the cancel rules for a consumer, and records that the consumer has read them.

import { TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

/**
 * - KEYS: the consumers, the rules.
 * - ARGV: this consumer, the silence after which a consumer is forgotten (ms).
 *
 * Returns the rules as JSON.
 */
export const readRules = defineScript({
  name: 'read-rules',
  kind: 'frees',
  keys: ['cancelConsumers', 'cancelRules'],
  args: ['consumer', 'silence'],
  lua: `${TIME}
local now = millis()
redis.call('ZADD', cancelConsumers, now, consumer)
redis.call('ZREMRANGEBYSCORE', cancelConsumers, '-inf', now - silence)
redis.call('PEXPIRE', cancelConsumers, silence)
return redis.call('HVALS', cancelRules)
`,
  answer: (reply) => reply as readonly string[],
})
