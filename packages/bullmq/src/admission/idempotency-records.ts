// Encodes an idempotency key and the record of its call for the script that adds the task (../store/lua/includes/add/idempotency.lua), and
// decodes the record of an earlier call.
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
/** The codes, which the script writes as well. */
export const RECORD_CODES = { actions: ACTION_CODES, statuses: STATUS_CODES } as const
/**
 * A record also contains the time at which the task was expected to start, in seconds since 1970 and in base 36. The time is zero
 * if it was unknown.
 */
const START_LENGTH = 7
const UNKNOWN_START = '0'.repeat(START_LENGTH)
const ACTIONS = Object.keys(ACTION_CODES) as readonly EnqueueAction[]
const STATUSES = Object.keys(STATUS_CODES) as readonly TaskStatus[]

/** The reply if the call has no earlier record and there is no room for a new one. */
export type NoRoomReply = readonly ['no_room']

/** Encodes the task's field. `expectedStartAt` is in ms since 1970. `hasRoom` says whether a record may be stored. */
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

/** Decodes what an earlier call's record says. Returns undefined if the key was used for a different request. */
export function decodeReplay(reply: string, queue: string): Enqueued | undefined {
  if (reply === 'reused') return undefined
  const action = ACTIONS.find((each) => ACTION_CODES[each] === reply[0]) ?? 'created'
  const status = STATUSES.find((each) => STATUS_CODES[each] === reply[1])
  const start = reply.slice(2, 2 + START_LENGTH)
  const expectedStartAt = start === UNKNOWN_START ? undefined : Number.parseInt(start, 36) * 1_000
  const id = `${queue}-${reply.slice(2 + START_LENGTH)}` as TaskId
  return { id, action, expectedStartAt, replayed: { status } }
}
