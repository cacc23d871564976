// Reads how many tasks of some concurrency keys wait and are active, their limits, and why they may start no task at the moment.
import type { KeyBlock, LimitSource } from '@bullpen/contract'
import type { KeyLimit, KeyState } from '@bullpen/engine/internal'
import { KEY_LIMIT_SETTING } from '../../internals/turns/derive-limits.ts'
import { ACTIVE_OF_KEY, READ_LIMITS } from '../../internals/turns/key-concurrency.ts'
import { decodeStartRate } from '../../internals/turns/key-limits.ts'
import { CHECK_RATE } from '../../internals/turns/key-rate.ts'
import { listOf, prioritiesOf } from '../../internals/turns/lanes.ts'
import { READ_FEATURES, READ_OBSTACLES } from '../../internals/turns/queue-features.ts'
import { TIME } from '../../store/scripts.ts'
import { defineScript } from '../script.ts'

type DescribedKey = Omit<KeyState, 'key'>

export interface DescribedKeys {
  /** In ms since 1970, by Redis's clock. */
  readonly now: number
  readonly waitingKeys: number
  readonly waitingTasks: number
  /** In the order of the keys that were given. */
  readonly keys: readonly DescribedKey[]
}

/** The Lua expression that returns 'command' or 'definition' for the limit `name`, which may be that of a single key. */
const sourceOf = (name: string): string =>
  `call('HEXISTS', settings, '${KEY_LIMIT_SETTING}' .. ${name}) == 1 and 'command' or 'definition'`

/**
 * - KEYS: lanes, settings.
 * - ARGV: the prefix of the queue's keys, and then the concurrency keys.
 *
 * If the queue does not limit its keys, their active tasks are not counted. Takes two commands for each key, and up to eight
 * more if there are limits and throttles.
 */
export const describeKeys = defineScript({
  name: 'describe-keys',
  kind: 'reads',
  keys: ['lanes', 'settings'],
  args: ['base'],
  lua: `${TIME}
local call = redis.call
local features
${READ_FEATURES}
${READ_OBSTACLES}
local function limit_of(name, key, is_own, value)
  if not value then return {} end
  local field = is_own and name .. ':' .. key or name
  return { tostring(value), is_own and 1 or 0, ${sourceOf('field')} }
end
local function describe(key)
  local waiting = call('LLEN', ${listOf('key')}) + call('ZCARD', ${prioritiesOf('key')})
  local active, limit, rate = 0
  local concurrency, of_rate = {}, {}
  if has_limits then
    active = ${ACTIVE_OF_KEY}
    ${READ_LIMITS}
    concurrency = limit_of('concurrency', key, own, own or default)
    of_rate = limit_of('rate', key, own_rate, rate)
  end
  ${CHECK_RATE}
  local blocks = {}
  if limit and active >= limit then table.insert(blocks, 'concurrency') end
  if rate and due - early > now then table.insert(blocks, 'rate') end
  if ends_at and ends_at > millis() then table.insert(blocks, 'throttle') end
  return { waiting, active, concurrency, of_rate, blocks, starts_at and whole(starts_at) or '' }
end
local described = {}
for i = 2, #ARGV do described[i - 1] = describe(ARGV[i]) end
return { whole(millis()), call('ZCARD', lanes), call('HGET', base .. 'turn-state', 'waiting') or '0', described }
`,
  answer(reply): DescribedKeys {
    const [now, waitingKeys, waitingTasks, keys] = reply as [string, number, string, StoredKey[]]
    return {
      now: Number(now),
      waitingKeys,
      waitingTasks: Number(waitingTasks),
      keys: keys.map(decode),
    }
  },
})

type StoredLimit = [] | [value: string, isOwn: 0 | 1, source: LimitSource]
type StoredKey = [
  waiting: number,
  active: number,
  concurrency: StoredLimit,
  rate: StoredLimit,
  blocks: KeyBlock[],
  startsAt: string,
]

function decode([waiting, active, concurrency, rate, blockedBy, startsAt]: StoredKey): DescribedKey {
  return {
    waiting,
    active,
    concurrency: decodeLimit(concurrency, Number),
    rate: decodeLimit(rate, decodeStartRate),
    blockedBy,
    nextStartAt: startsAt === '' ? undefined : Number(startsAt),
  }
}

function decodeLimit<T>(limit: StoredLimit, decodeValue: (stored: string) => T): KeyLimit<T> | undefined {
  if (limit.length === 0) return undefined
  const [value, isOwn, source] = limit
  return { value: decodeValue(value), isOwn: isOwn === 1, source }
}
