// Lua that derives the limits in force from a queue's settings (./key-limits.ts).
import { COUNT_ACTIVE, RESUME_KEY } from './key-concurrency.ts'
import { LUA_MARK } from './limiters/needs.ts'

/** The beginning of the name of each setting that limits concurrency keys. */
export const KEY_LIMIT_SETTING = 'keyLimit:'
/** The beginning of the name of each setting that sets the capacity of a limiter. */
export const CAPACITY_SETTING = 'capacity:'

/** The kinds of limiters whose capacities are settings. The capacities of other kinds stay as they are. */
const DERIVED_KINDS = ['permits:', 'task:'] as const

const startsWith = (name: string, start: string): string => `string.sub(${name}, 1, ${start.length}) == '${start}'`

/**
 * A Lua function, `derive_limits(base)`, which derives the limits in force from the queue's settings, counts the active
 * tasks, and makes the next fetches examine each lane that waits for a limiter or because of its rate. O(settings +
 * active tasks + blocked lanes).
 */
export const DERIVE_LIMITS = `${COUNT_ACTIVE}
local function derive_limits(base)
  local settings, limits, capacities = redis.call('HGETALL', base .. 'settings'), {}, {}
  local function define(defined, applied)
    for name, value in pairs(cjson.decode(defined)) do applied[name] = applied[name] or value end
  end
  for i = 1, #settings, 2 do
    local name, value = settings[i], settings[i + 1]
    if name == 'definedKeyLimits' then define(value, limits)
    elseif name == 'definedCapacities' then define(value, capacities)
    elseif ${startsWith('name', KEY_LIMIT_SETTING)} then limits[string.sub(name, ${KEY_LIMIT_SETTING.length + 1})] = value
    elseif ${startsWith('name', CAPACITY_SETTING)} then capacities[string.sub(name, ${CAPACITY_SETTING.length + 1})] = value
    end
  end
  redis.call('DEL', base .. 'key-limits')
  for name, value in pairs(limits) do redis.call('HSET', base .. 'key-limits', name, value) end
  for _, limiter in ipairs(redis.call('HKEYS', base .. 'capacities')) do
    local is_derived = ${DERIVED_KINDS.map((kind) => startsWith('limiter', kind)).join(' or ')}
    if is_derived and not capacities[limiter] then redis.call('HDEL', base .. 'capacities', limiter) end
  end
  for limiter, capacity in pairs(capacities) do redis.call('HSET', base .. 'capacities', limiter, capacity) end
  local times, has_lanes = base .. 'lane-times', redis.call('EXISTS', base .. 'turn-state') == 1
  if next(limits) == nil then redis.call('UNLINK', times) end
  for _, limiter in ipairs(redis.call('HKEYS', base .. 'capacities')) do
    if has_lanes and ${startsWith('limiter', 'service:')} then redis.call('ZADD', times, '0', ${LUA_MARK} .. limiter) end
  end
  count_active(base, true)
  if redis.call('ZUNIONSTORE', times, '1', times, 'WEIGHTS', '0') > 0 then redis.call('ZADD', base .. 'marker', '0', '0') end
end
`

/**
 * A Lua function, `derive_limits_of_keys(base, keys)`, which derives the limits of single keys from the queue's
 * settings, and lets their lanes take turns again that may start a task. `keys` has the key of each changed field of
 * `key-limits`. Returns false if it has derived nothing, because the queue's first limit was added or its last one was
 * removed, so that counting begins or ends. Then {@link DERIVE_LIMITS}, which this follows, is needed. O(changed keys +
 * definition), and O(lanes that wait because of a rate) if a rate has changed.
 */
export const DERIVE_LIMITS_OF_KEYS = `
local function derive_limits_of_keys(base, keys)
  local call, settings, limits, times, has_rates = redis.call, base .. 'settings', base .. 'key-limits', base .. 'lane-times', false
  if call('EXISTS', limits) == 0 then return false end
  local defined = cjson.decode(call('HGET', settings, 'definedKeyLimits') or '{}')
  for field in pairs(keys) do
    local value = call('HGET', settings, '${KEY_LIMIT_SETTING}' .. field) or defined[field]
    if value then call('HSET', limits, field, value) else call('HDEL', limits, field) end
    has_rates = has_rates or ${startsWith('field', 'rate')}
  end
  if call('EXISTS', limits) == 0 then return false end
  for _, key in pairs(keys) do${RESUME_KEY}
  end
  if has_rates and call('ZUNIONSTORE', times, '1', times, 'WEIGHTS', '0') > 0 then call('ZADD', base .. 'marker', '0', '0') end
  return true
end
`
