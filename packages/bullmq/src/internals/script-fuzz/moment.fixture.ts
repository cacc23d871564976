// Reads everything that the fuzz's invariants are about, in one script.
import type { Redis } from 'ioredis'
import type { QueueKeys } from '../../keys.ts'
import { defineScript } from '../../scripts/define-script.fixture.ts'
import { runScript } from '../../scripts/script.ts'
import { SCAN, type Scan } from '../index-model/full-scan.fixture.ts'
import { LANE_SCAN, type LaneScan } from '../turns/lane-scan.fixture.ts'

/** What the other scans do not read. The scan is unbounded, so only tests may use it. */
const REST = `
local base, after = ARGV[1], ARGV[2]
local prefix = string.gsub(base, '[%[%]*?\\\\]', '\\\\%0')
local found = { locks = {}, events = {}, outbox = {}, unique = {}, last = after }
for _, key in ipairs(redis.call('KEYS', prefix .. '*')) do
  local lock = redis.call('TYPE', key).ok == 'hash' and redis.call('HGET', key, 'lock')
  if lock and lock ~= '' then
    found.locks[string.sub(key, #base + 1)] = string.match(lock, '^%d+ (.*)$')
  end
end
for _, event in ipairs(redis.call('XRANGE', base .. 'events', after == '' and '-' or '(' .. after, '+')) do
  local fields = {}
  for i = 1, #event[2], 2 do
    fields[event[2][i]] = event[2][i + 1]
  end
  found.last = event[1]
  if fields.event == 'completed' or fields.event == 'failed' then
    found.events[#found.events + 1] = { fields.event, fields.jobId }
  end
end
for _, entry in ipairs(redis.call('XRANGE', base .. 'outbox', '-', '+')) do
  found.outbox[#found.outbox + 1] = { entry[1], string.sub(entry[2][2], 1, 100) }
end
found.expiries = redis.call('ZRANGE', base .. 'expiries', 0, -1)
found.cancelling = redis.call('HKEYS', base .. 'cancelling')
found.isOpen = not redis.call('HGET', base .. 'meta', 'paused')
found.isLimited = redis.call('HEXISTS', base .. 'meta', 'concurrency') + redis.call('HEXISTS', base .. 'meta', 'max') + redis.call('EXISTS', base .. 'limiter') > 0
found.marker = redis.call('ZSCORE', base .. 'marker', '0')
return cjson.encode(found)
`

export interface Rest {
  /** The token of each lock, by the task's id. */
  readonly locks: Readonly<Record<string, string>>
  /** The ends among the events since the last moment. */
  readonly events: readonly (readonly [event: 'completed' | 'failed', id: string])[]
  /** The id of the last event. */
  readonly last: string
  /** The id and the beginning of each entry. */
  readonly outbox: readonly (readonly [id: string, text: string])[]
  readonly expiries: readonly string[]
  readonly cancelling: readonly string[]
  /** Whether the queue is not paused. */
  readonly isOpen: boolean
  /** Whether a concurrency, a rate or a throttle may hold up the queue. */
  readonly isLimited: boolean
  readonly marker: string | false
}

/** What a queue holds at one moment. */
export interface Moment {
  readonly scan: Scan
  readonly lanes: LaneScan
  readonly rest: Rest
}

const readMoment = defineScript({
  name: 'read-moment',
  kind: 'reads',
  keys: ['wait'],
  args: ['base', 'after'],
  lua:
    [SCAN, LANE_SCAN, REST].map((lua, i) => `local function scan_${i}()${lua}end`).join('\n') +
    '\nreturn { scan_0(), scan_1(), scan_2() }',
  answer: (reply) => reply as readonly [string, string, string],
})

/** Reads the queue. `after` is the id of the last event of the moment before, or ''. */
export async function momentOf(redis: Redis, keys: QueueKeys, after: string): Promise<Moment> {
  const texts = await runScript(redis, readMoment, { wait: keys.wait }, { base: keys.base, after })
  const [scan, lanes, rest] = texts.map((text) => JSON.parse(text) as unknown)
  return { scan: scan as Scan, lanes: lanes as LaneScan, rest: rest as Rest }
}
