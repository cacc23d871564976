// Lua that derives the limits of concurrency keys that apply from a queue's settings (./key-limits.ts).
import { COUNT_ACTIVE } from './key-concurrency.ts'

/** The beginning of the name of each setting that limits concurrency keys. */
export const KEY_LIMIT_SETTING = 'keyLimit:'

/**
 * A Lua function, `derive_key_limits(base)`, which derives the limits that apply from the queue's settings, counts the active tasks of each
 * key, and lets the next fetches look at each lane that waits because of its rate. O(settings + active tasks + blocked lanes).
 */
export const DERIVE_KEY_LIMITS = `${COUNT_ACTIVE}
local function derive_key_limits(base)
  local settings, limits = redis.call('HGETALL', base .. 'settings'), {}
  for i = 1, #settings, 2 do
    if settings[i] == 'definedKeyLimits' then
      for name, value in pairs(cjson.decode(settings[i + 1])) do limits[name] = limits[name] or value end
    elseif string.sub(settings[i], 1, ${KEY_LIMIT_SETTING.length}) == '${KEY_LIMIT_SETTING}' then
      limits[string.sub(settings[i], ${KEY_LIMIT_SETTING.length + 1})] = settings[i + 1]
    end
  end
  redis.call('DEL', base .. 'key-limits')
  for name, value in pairs(limits) do redis.call('HSET', base .. 'key-limits', name, value) end
  local times = base .. 'lane-times'
  if next(limits) == nil then redis.call('UNLINK', times) end
  count_active(base)
  if redis.call('ZUNIONSTORE', times, '1', times, 'WEIGHTS', '0') > 0 then redis.call('ZADD', base .. 'marker', '0', '0') end
end
`
