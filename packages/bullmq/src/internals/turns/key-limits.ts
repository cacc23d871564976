// Stores the limits of a queue's concurrency keys.
//
// The limits of the catalogue and those that commands have set are stored in the queue's `settings`: the former as JSON in one field
// (`definedKeyLimits`), and the latter as one field for each limit, so that an older command never overwrites a newer one. The scripts that
// start tasks read neither. They read the hash `key-limits`, which is derived whenever one of the two changes, and which does not exist if
// there are no limits. A command's limit replaces that of the catalogue. The limit of a key replaces the one that all keys have.
import { COUNT_ACTIVE } from './key-concurrency.ts'

/** What a concurrency key may do. A limit that is undefined does not apply. */
export interface KeyLimit {
  /** How many of the key's tasks may be active at the same time, over all workers. */
  readonly concurrency?: number | undefined
}

/** The limits of every key, and of single keys. */
export interface KeyLimits extends KeyLimit {
  readonly keys: Readonly<Record<string, KeyLimit>>
}

/** The name of a limit among the settings that commands change. `key` is a concurrency key. Without it, the limit applies to every key. */
export const keyLimitSetting = (limit: keyof KeyLimit, key?: string): string =>
  `${KEY_LIMIT_SETTING}${fieldOf(limit, key)}`

/** The beginning of the name of each of these settings. */
export const KEY_LIMIT_SETTING = 'keyLimit:'

/** The name of a limit in `key-limits`. */
const fieldOf = (limit: keyof KeyLimit, key: string | undefined): string =>
  key === undefined ? limit : `${limit}:${key}`

/** Encodes the limits of the catalogue: as JSON, or as '' if there are none. */
export function encodeKeyLimits(limits: KeyLimits | undefined): string {
  if (limits === undefined) return ''
  const all = [[undefined, limits] as const, ...Object.entries(limits.keys)]
  const fields = all.flatMap(([key, { concurrency }]) =>
    concurrency === undefined ? [] : [[fieldOf('concurrency', key), `${concurrency}`] as const],
  )
  return fields.length === 0 ? '' : JSON.stringify(Object.fromEntries(fields))
}

/**
 * A Lua function, `derive_key_limits(base)`, which derives the limits that apply from the queue's settings, and counts the active tasks
 * of each key. O(settings + active tasks + blocked lanes).
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
  count_active(base)
end
`
