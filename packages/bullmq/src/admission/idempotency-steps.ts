// Defines the steps of an enqueue with an idempotency key: one looks up the record of an earlier call, and one stores the record
// of this call.
//
// A record must outlive its task and then expire without being deleted. If each record had its own Redis key, that key and its
// expiry would take more memory than the record. Records are therefore fields of hashes, and each hash expires as a whole. Time
// is divided into periods, each a quarter as long as a record's lifetime. Each period has 4,096 hashes, so that every hash is
// small enough for Redis to free quickly. A record is kept for its lifetime or up to a quarter longer. A look-up reads one field
// from each of five hashes.
//
// Another hash counts the records by the time at which they expire, because their memory is limited (./idempotency-memory.ts).
// Callers may choose any lifetime, so this time is rounded up to a full minute, or to a longer unit if the lifetime exceeds a
// day. All lifetimes of up to a day together therefore have at most 1,800 counts.
//
// Measured: a record takes 92 bytes if its period has 30,000 records, and 83 bytes if its period has 100,000. In a period with
// few records, each record has a hash to itself and takes 257 bytes. Freeing a hash of 500 records takes less than 0.2 ms.

import type { EnqueueAction, Enqueued, TaskId, TaskStatus } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'

/** The number of periods in a record's lifetime. */
const PERIODS = 4
/** The number of an idempotency key's characters that select its hash. Two base64 characters select one of 4,096 hashes. */
const BUCKET_DIGITS = 2
const REQUEST_LENGTH = 11
/**
 * The unit, in seconds, to which expiry times are rounded up. The unit is doubled until a lifetime contains at most
 * {@link MAX_UNITS_PER_LIFE} of them.
 */
const COUNT_UNIT_S = 60
const MAX_UNITS_PER_LIFE = 1_440

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

/** Returns a Lua table of the codes. */
const codes = (table: Readonly<Record<string, string>>): string =>
  `({ ${Object.entries(table)
    .map(([name, code]) => `${name} = '${code}'`)
    .join(', ')} })`

/**
 * The step before the add. `idempotency` is '' or the result of {@link encodeIdempotency}. Redis's clock determines the current
 * period. The step defines `remember(action, status, id)`, which stores this call's record. The action is `created` unless
 * another task has the call's unique key. If the call creates a task, the task's first status is `first_status`. The task is
 * expected to start at `expected_start`, unless it already exists. If `room` is 0, a call without an earlier record receives the
 * list `no_room`, and nothing is stored.
 */
export const REPLAY = `
local remember, first_status
if idempotency ~= '' then
  local life, key, request, expected_start, room
  life, key, request, expected_start, first_status, room =
    string.match(idempotency, '^(%d+) (%S+) (%S+) (%S+) (%S+) (%d)$')
  local length = math.max(1, math.floor(life / ${PERIODS}))
  local period = math.floor(call('TIME')[1] / length)
  local function bucket(number)
    return base .. 'idempotency:' .. life .. ':' .. number .. ':' .. string.sub(key, 1, ${BUCKET_DIGITS})
  end
  for number = period, period - ${PERIODS}, -1 do
    local record = call('HGET', bucket(number), key)
    if record then
      if string.sub(record, 1, ${REQUEST_LENGTH}) ~= request then return 'reused' end
      return string.sub(record, ${REQUEST_LENGTH + 1})
    end
  end
  if room == '0' then return { 'no_room' } end
  remember = function(action, status, task)
    -- The record holds the task's id without the queue's name.
    local outcome = ${codes(ACTION_CODES)}[action] .. (${codes(STATUS_CODES)}[status] or '${DELETED}')
    local start = action == 'existing' and '${UNKNOWN_START}' or expected_start
    call('HSET', bucket(period), key, request .. outcome .. start .. string.match(task, '[^-]+$'))
    local expires_at, unit = (period + 1) * length + life, ${COUNT_UNIT_S}
    call('EXPIREAT', bucket(period), expires_at, 'NX')
    while unit * ${MAX_UNITS_PER_LIFE} < tonumber(life) do unit = unit * 2 end
    call('HINCRBY', base .. 'idempotency-counts', string.format('%.0f', math.ceil(expires_at / unit) * unit), 1)
  end
end`

/** The step after the add. By then, the task `id` is stored. */
export const REMEMBER = `if remember then remember(replaced and 'replaced' or 'created', first_status, id) end`

const ACTIONS = Object.keys(ACTION_CODES) as readonly EnqueueAction[]
const STATUSES = Object.keys(STATUS_CODES) as readonly TaskStatus[]

/** The reply of {@link REPLAY} if the call has no earlier record and there is no room for a new one. */
export type NoRoomReply = readonly ['no_room']

/** Encodes the steps' argument. `expectedStartAt` is in ms since 1970. `hasRoom` says whether a record may be stored. */
export function encodeIdempotency(
  { idempotency, delayMs }: NewTask,
  expectedStartAt: number | undefined,
  hasRoom: boolean,
): string {
  if (idempotency === undefined) return ''
  const { life, key, request } = idempotency
  const status: TaskStatus = delayMs === undefined ? 'waiting' : 'scheduled'
  const start = ((expectedStartAt ?? 0) / 1_000).toString(36).padStart(START_LENGTH, '0')
  return `${life} ${key} ${request} ${start} ${status} ${hasRoom ? 1 : 0}`
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
