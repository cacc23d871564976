// Stores a cancel rule, and announces it to the consumers of the queue.
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/**
 * KEYS: the rules, the consumers, the rule's progress. ARGV: the rule's id, the rule as JSON without its closing brace, how long a
 * consumer may start tasks without reading the rules (ms), the channel. Returns the stored rule, whose time is Redis's, and the
 * consumers that may still start tasks without knowing it.
 */
export const storeRuleScript = defineScript({
  name: 'store-rule',
  kind: 'frees',
  keys: ['cancelRules', 'cancelConsumers', 'progress'],
  args: ['id', 'rule', 'trustedMs', 'channel'],
  lua: `${TIME}
local now = millis()
local stored = rule .. ',"at":' .. whole(now) .. '}'
redis.call('HSET', progress, 'rule', stored)
redis.call('HSET', cancelRules, id, stored)
redis.call('PUBLISH', channel, id)
return { stored, redis.call('ZRANGEBYSCORE', cancelConsumers, now - trustedMs, '+inf') }
`,
  answer(reply) {
    const [rule, consumers] = reply as [string, string[]]
    return { rule, consumers }
  },
})
