#!lua flags=allow-oom
-- Stores a cancel rule, and announces it to the queue's consumers. A second call with the same id stores nothing and returns the same
-- rule, even after the rule has been deleted. The rule of a drain is stored only while that drain is in force.
--
-- KEYS  cancelRules, cancelConsumers
-- KEYS  progress   the rule's progress
-- KEYS  cancelledGroup, settings
-- ARGV  id         the rule's id
-- ARGV  rule       the rule as JSON, without its closing brace
-- ARGV  limit      how many rules the queue may then have
-- ARGV  trustedMs  how long a consumer may start tasks without reading the rules
-- ARGV  channel    where rules are announced
-- ARGV  group      the rule's group or ''
-- ARGV  drain      the command of the drain that cancels the queue's tasks, or ''
--
-- Returns `[rule: string, consumers: string[]] | 'full' | null`: the stored rule, whose time is Redis's, and the consumers that may
-- still start tasks without knowing it. 'full' if the queue has too many rules, and null if the drain is no longer in force; nothing
-- was written then.
--- @include time

-- No member of a cancelled group or run is added for this long, in s. Members are added within seconds, unless their node is away.
-- Once a run has ended, runs/run-cancels.ts shortens this time.
local GROUP_REFUSED_S = 86400

if drain ~= '' then
  local current = redis.call('HGET', settings, 'drain')
  if not current or cjson.decode(current).command ~= drain then
    return false
  end
end
local now = millis()
local stored = redis.call('HGET', progress, 'rule')
if not stored then
  if redis.call('HLEN', cancelRules) >= tonumber(limit) then
    return 'full'
  end
  stored = rule .. ',"at":' .. whole(now) .. '}'
  redis.call('HSET', progress, 'rule', stored)
  redis.call('HSET', cancelRules, id, stored)
  if group ~= '' then
    redis.call('SET', cancelledGroup, id, 'EX', GROUP_REFUSED_S)
  end
  redis.call('PUBLISH', channel, id)
end
if drain ~= '' then
  redis.call('HSET', settings, 'cancelledDrain', drain)
end
return { stored, redis.call('ZRANGEBYSCORE', cancelConsumers, now - trustedMs, '+inf') }
