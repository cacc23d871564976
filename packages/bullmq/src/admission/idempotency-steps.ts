// Defines the steps of an enqueue with an idempotency key: one looks up the record of an earlier call, and one stores the record
// of this call.
//
// A record must outlive its task and then expire without being deleted. If each record had its own Redis key, that key and its
// expiry would take more memory than the record. Records are therefore fields of hashes, and each hash expires as a whole. Time
// is divided into periods, each half as long as a record's lifetime. Each period has 4,096 hashes, so that every hash is small
// enough for Redis to free quickly. A record is kept for its lifetime or up to a half longer. A look-up reads one field from each
// of three hashes. With shorter periods, records would be kept for less time than necessary, but each look-up would take longer.
//
// Measured: a record takes 92 bytes if its period has 30,000 records, and 83 bytes if its period has 100,000. In a period with
// few records, each record has a hash to itself and takes 257 bytes. Freeing a hash of 500 records takes less than 0.2 ms.

import type { EnqueueAction, Enqueued, TaskId, TaskStatus } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'

/** The number of periods in a record's lifetime. */
const PERIODS = 2
/** The number of an idempotency key's characters that select its hash. Two base64 characters select one of 4,096 hashes. */
const BUCKET_DIGITS = 2
const REQUEST_LENGTH = 11
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

/** Returns a Lua table of the codes. */
const codes = (table: Readonly<Record<string, string>>): string =>
  `({ ${Object.entries(table)
    .map(([name, code]) => `${name} = '${code}'`)
    .join(', ')} })`

/**
 * The step before the add. `idempotency` is '' or the result of {@link encodeIdempotency}. Redis's clock determines the current
 * period. The step defines `remember(action, status, id)`, which stores this call's record. The argument contains the record of a
 * call that creates a task, so that nothing has to be computed for it. For any other action, the record names another status or
 * task. If `room` is 0, a call without an earlier record receives the list `no_room`, and nothing is stored.
 */
export const REPLAY = `
local remember
if idempotency ~= '' then
  local life, room, key, record = string.match(idempotency, '^(%d+) (%d) (%S+) (.*)$')
  local length = math.max(1, math.floor(life / ${PERIODS}))
  local period = math.floor(call('TIME')[1] / length)
  local head, tail = base .. 'idempotency:' .. life .. ':', ':' .. string.sub(key, 1, ${BUCKET_DIGITS})
  local request = string.sub(record, 1, ${REQUEST_LENGTH})
  for number = period, period - ${PERIODS}, -1 do
    local found = call('HGET', head .. number .. tail, key)
    if found then
      if string.sub(found, 1, ${REQUEST_LENGTH}) ~= request then return 'reused' end
      return string.sub(found, ${REQUEST_LENGTH + 1})
    end
  end
  if room == '0' then return { 'no_room' } end
  remember = function(action, status, task)
    if action == 'replaced' then
      record = request .. '${ACTION_CODES.replaced}' .. string.sub(record, ${REQUEST_LENGTH + 2})
    elseif action ~= 'created' then
      local start = action == 'existing' and '${UNKNOWN_START}' or string.sub(record, ${START_AT}, ${START_AT + START_LENGTH - 1})
      record = request .. ${codes(ACTION_CODES)}[action] .. (${codes(STATUS_CODES)}[status] or '${DELETED}') .. start
        .. string.match(task, '[^-]+$')
    end
    local bucket = head .. period .. tail
    call('HSET', bucket, key, record)
    -- A new hash has no expiry time yet.
    if call('HLEN', bucket) == 1 then call('EXPIREAT', bucket, (period + 1) * length + life) end
  end
end`

/** The step after the add. By then, the task `id` is stored. */
export const REMEMBER = `if remember then remember(replaced and 'replaced' or 'created') end`

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
  return `${life} ${hasRoom ? 1 : 0} ${key} ${request}${outcome}${start}${id.slice(queue.length + 1)}`
}

/** Returns when a record that is stored now will expire. All times are in seconds; `now` is the time since 1970. */
export function recordExpiry(life: number, now: number): number {
  const length = Math.max(1, Math.floor(life / PERIODS))
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
