// Defines the steps of an enqueue with an idempotency key: one looks up the record of an earlier call, and one stores the record
// of this call.
//
// A record must outlive its task and then expire without being deleted. If each record had its own Redis key, that key and its
// expiry would take more memory than the record. Records are therefore fields of hashes, and each hash expires as a whole. Time
// is divided into periods, each half as long as a record's lifetime. Each period has 4,096 hashes, so that every hash is small
// enough for Redis to free quickly. A record is kept for its lifetime or up to a half longer. A look-up reads one field from each
// of three hashes. With shorter periods, records would be kept for less time than necessary, but each look-up would take longer.
//
// The parts of the steps' argument stand at fixed positions, and the record of a call that creates a task is the last of them, so
// that Redis needs no pattern and no table to store it.
//
// Measured: a record takes 92 bytes if its period has 30,000 records, and 83 bytes if its period has 100,000. In a period with
// few records, each record has a hash to itself and takes 257 bytes. Freeing a hash of 500 records takes less than 0.2 ms.

import type { EnqueueAction, Enqueued, TaskId, TaskStatus } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'

/** The number of periods in a record's lifetime. */
const PERIODS = 2
/**
 * The numbers of the periods, each a character. A number is used again when the hashes with that number have expired: one period
 * after a look-up last reads them. As numbers that grow, they would take Redis 0.2 µs each to write as text.
 */
const PERIOD_NUMBERS = '0123'
/** The number of an idempotency key's characters that select its hash. Two base64 characters select one of 4,096 hashes. */
const BUCKET_DIGITS = 2
const KEY_LENGTH = 22
const REQUEST_LENGTH = 11
/** The length of a lifetime in seconds, with leading zeros. The longest lifetime is 365 days. */
const LIFE_LENGTH = 8
/** One character of a record encodes what the call did, and another encodes the task's status at that time. */
const ACTION_CODES = { created: 'c', existing: 'e', replaced: 'r', extended: 'x' } as const satisfies Record<
  EnqueueAction,
  string
>
const STATUS_CODES = {
  scheduled: 's',
  waiting: 'w',
  active: 'a',
  retrying: 'r',
  completed: 'c',
  dead: 'd',
  cancelled: 'n',
  expired: 'e',
} as const satisfies Record<TaskStatus, string>
/** Stands for the status of a task that has been deleted. */
const DELETED = '-'
/**
 * A record also contains the time at which the task was expected to start, in seconds since 1970 and in base 36. The time is zero
 * if it was unknown.
 */
const START_LENGTH = 7
const UNKNOWN_START = '0'.repeat(START_LENGTH)
/** The position of that time in a record, counted from 1, after the request and the two codes. */
const START_AT = REQUEST_LENGTH + 3

/**
 * The positions in the step's argument, counted from 1: whether there is room; the lifetime, a colon, the bucket and a colon,
 * which belong to a hash's key; the key; the record.
 */
const HASH_AT = 2
const KEY_AT = HASH_AT + LIFE_LENGTH + ':'.length + BUCKET_DIGITS + ':'.length
const RECORD_AT = KEY_AT + KEY_LENGTH

/** Returns a Lua table of the codes. */
const codes = (table: Readonly<Record<string, string>>): string =>
  `({ ${Object.entries(table)
    .map(([name, code]) => `${name} = '${code}'`)
    .join(', ')} })`

/**
 * The step before the add. `idempotency` is '' or the result of {@link encodeIdempotency}. Redis's clock determines the current
 * period. The step defines `store_record()`, which stores `record`. The record is that of a call that creates a task; for any other
 * action, {@link RECORD_OTHER} or {@link REMEMBER} changes it. If there is no room, or the task is not admitted, a call without an earlier
 * record receives the list `no_room`, and nothing is stored.
 */
export const REPLAY = `
local record, store_record
if idempotency ~= '' then
  local sub = string.sub
  local hash = base .. 'idempotency:' .. sub(idempotency, ${HASH_AT}, ${KEY_AT - 1})
  local key = sub(idempotency, ${KEY_AT}, ${RECORD_AT - 1})
  local life = tonumber(sub(idempotency, ${HASH_AT}, ${HASH_AT + LIFE_LENGTH - 1}))
  local length = math.ceil(life / ${PERIODS})
  local period = math.floor(call('TIME')[1] / length)
  record = sub(idempotency, ${RECORD_AT})
  local current
  for each = period, period - ${PERIODS}, -1 do
    local number = each % ${PERIOD_NUMBERS.length} + 1
    local in_period = hash .. sub('${PERIOD_NUMBERS}', number, number)
    current = current or in_period
    local found = call('HGET', in_period, key)
    if found then
      if sub(found, 1, ${REQUEST_LENGTH}) ~= sub(record, 1, ${REQUEST_LENGTH}) then return 'reused' end
      return sub(found, ${REQUEST_LENGTH + 1})
    end
  end
  if sub(idempotency, 1, 1) == '0' then return { 'no_room' } end
  function store_record()
    call('HSET', current, key, record)
    -- A new hash has no expiry time yet.
    if call('HLEN', current) == 1 then call('EXPIREAT', current, (period + 1) * length + life) end
  end
end`

/**
 * Lua lines that store the record of a call that returns another task. `action` is what the call did, `other` is the task, and
 * `status` is its status.
 */
export const RECORD_OTHER = `
      if record then
        local start = action == 'existing' and '${UNKNOWN_START}' or string.sub(record, ${START_AT}, ${START_AT + START_LENGTH - 1})
        record = string.sub(record, 1, ${REQUEST_LENGTH}) .. ${codes(ACTION_CODES)}[action] .. (${codes(STATUS_CODES)}[status] or '${DELETED}')
          .. start .. string.match(other, '[^-]+$')
        store_record()
      end`

/** The step after the add. By then, the task `id` is stored. */
export const REMEMBER = `if record then
    if replaced then
      record = string.sub(record, 1, ${REQUEST_LENGTH}) .. '${ACTION_CODES.replaced}' .. string.sub(record, ${REQUEST_LENGTH + 2})
    end
    store_record()
  end`

const ACTIONS = Object.keys(ACTION_CODES) as readonly EnqueueAction[]
const STATUSES = Object.keys(STATUS_CODES) as readonly TaskStatus[]

/** The reply of {@link REPLAY} if the call has no earlier record and there is no room for a new one. */
export type NoRoomReply = readonly ['no_room']

/** Encodes the steps' argument. `expectedStartAt` is in ms since 1970. `hasRoom` says whether a record may be stored. */
export function encodeIdempotency(
  { idempotency, delayMs, id, queue }: NewTask,
  expectedStartAt: number | undefined,
  hasRoom: boolean,
): string {
  if (idempotency === undefined) return ''
  const { life, key, request } = idempotency
  const outcome = ACTION_CODES.created + STATUS_CODES[delayMs === undefined ? 'waiting' : 'scheduled']
  const start = ((expectedStartAt ?? 0) / 1_000).toString(36).padStart(START_LENGTH, '0')
  const record = `${request}${outcome}${start}${id.slice(queue.length + 1)}`
  return `${hasRoom ? 1 : 0}${lifeCode(life)}:${key.slice(0, BUCKET_DIGITS)}:${key}${record}`
}

/**
 * Returns the key of the hash that has the record of an idempotency key if the call is made at this time, without the prefix of the
 * queue's keys. Both times are in seconds; `now` is the time since 1970.
 */
export function recordHash(life: number, key: string, now: number): string {
  const period = Math.floor(now / periodLength(life))
  return `idempotency:${lifeCode(life)}:${key.slice(0, BUCKET_DIGITS)}:${PERIOD_NUMBERS[period % PERIOD_NUMBERS.length]}`
}

/** Returns the length of a period, in seconds, of which a record's lifetime is at most {@link PERIODS}. */
export function periodLength(life: number): number {
  return Math.ceil(life / PERIODS)
}

function lifeCode(life: number): string {
  return `${life}`.padStart(LIFE_LENGTH, '0')
}

/** Returns when a record that is stored now will expire. All times are in seconds; `now` is the time since 1970. */
export function recordExpiry(life: number, now: number): number {
  const length = periodLength(life)
  return (Math.floor(now / length) + 1) * length + life
}

/** Decodes the reply of {@link REPLAY}. Returns undefined if the key was used for a different request. */
export function decodeReplay(reply: string, queue: string): Enqueued | undefined {
  if (reply === 'reused') return undefined
  const action = ACTIONS.find((each) => ACTION_CODES[each] === reply[0]) ?? 'created'
  const status = STATUSES.find((each) => STATUS_CODES[each] === reply[1])
  const start = reply.slice(2, 2 + START_LENGTH)
  const expectedStartAt = start === UNKNOWN_START ? undefined : Number.parseInt(start, 36) * 1_000
  const id = `${queue}-${reply.slice(2 + START_LENGTH)}` as TaskId
  return { id, action, expectedStartAt, replayed: { status } }
}
