// Stores a cancel rule, and announces it to the queue's consumers.
import { TIME } from '../includes/time.ts'
import { defineScript } from '../script.ts'

/**
 * For how long no member of a cancelled group or run is added, in s. Members are added within seconds, unless their node is
 * away. Once a run has ended, ../../runs/run-cancels.ts shortens this time.
 */
const GROUP_REFUSED_S = 86_400

/**
 * - KEYS: the rules, the consumers, the rule's progress, the key that refuses further members of the rule's group.
 * - ARGV: the rule's id, the rule as JSON without its closing brace, how many rules the queue may then have, how long a consumer
 *   may start tasks without reading the rules (ms), the channel, the rule's group or ''.
 *
 * Returns the stored rule, whose time is Redis's, and the consumers that may still start tasks without knowing it. Returns
 * undefined if the queue has too many rules; the script has then written nothing. A second call with the same id stores nothing
 * and returns the same rule, even after the rule has been deleted.
 */
export const storeRuleScript = defineScript({
  name: 'store-rule',
  kind: 'frees',
  keys: ['cancelRules', 'cancelConsumers', 'progress', 'cancelledGroup'],
  args: ['id', 'rule', 'limit', 'trustedMs', 'channel', 'group'],
  lua: `${TIME}
local now = millis()
local stored = redis.call('HGET', progress, 'rule')
if not stored then
  if redis.call('HLEN', cancelRules) >= tonumber(limit) then return false end
  stored = rule .. ',"at":' .. whole(now) .. '}'
  redis.call('HSET', progress, 'rule', stored)
  redis.call('HSET', cancelRules, id, stored)
  if group ~= '' then redis.call('SET', cancelledGroup, id, 'EX', ${GROUP_REFUSED_S}) end
  redis.call('PUBLISH', channel, id)
end
return { stored, redis.call('ZRANGEBYSCORE', cancelConsumers, now - trustedMs, '+inf') }
`,
  answer(reply) {
    if (reply === null) return undefined
    const [rule, consumers] = reply as [string, string[]]
    return { rule, consumers }
  },
})
