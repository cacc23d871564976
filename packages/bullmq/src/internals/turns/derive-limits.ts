// Lua that derives the limits in force from a queue's settings (./key-limits.ts).
import { COUNT_ACTIVE } from './key-concurrency.ts'
import { LUA_MARK } from './limiters/needs.ts'

/** The beginning of the name of each setting that limits concurrency keys. */
export const KEY_LIMIT_SETTING = 'keyLimit:'
/** The beginning of the name of each setting that sets the capacity of a limiter. */
export const CAPACITY_SETTING = 'capacity:'

/** The kinds of limiters whose capacities are settings. The capacities of other kinds stay as they are. */
const DERIVED_KINDS = ['permits:', 'task:'] as const

const startsWith = (name: string, start: string): string => `string.sub(${name}, 1, ${start.length}) == '${start}'`

/**
 * A Lua function, `derive_limits(base)`, which derives the limits in force from the queue's settings, counts the active tasks, and makes the
 * next fetches examine each lane that waits for a limiter or because of its rate. O(settings + active tasks + blocked lanes).
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
