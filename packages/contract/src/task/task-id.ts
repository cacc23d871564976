// Creates and parses task ids. An id is generated before the task is sent to Redis, sorts by time, and includes the name of the
// task's queue.
import { BullpenError } from '../errors/errors.ts'

declare const brand: unique symbol

/** `<queue>-<26 characters>`: the queue, then 48 bits of time and 80 random bits in Crockford's base 32 (the ULID form). */
export type TaskId = string & { readonly [brand]: 'TaskId' }

/** A queue's name: a lower-case letter, then lower-case letters, digits, dots, hyphens and underscores, at most 40 characters. */
export const QUEUE_NAME = /^[a-z][a-z0-9._-]{0,39}$/

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'
const UNIQUE = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/
const TIME_DIGITS = 10
/** All pairs of digits. Encoding ten bits at once takes less than half as long as encoding five. */
const PAIRS = [...ALPHABET].flatMap((first) => [...ALPHABET].map((second) => first + second))

/** How many random bytes an id needs. */
export const ID_RANDOM_BYTES = 10

/** Creates an id. `now` is in milliseconds since 1970, and `random` contains at least {@link ID_RANDOM_BYTES} random bytes. */
export function createTaskId(queue: string, now: number, random: Uint8Array): TaskId {
  let time = ''
  for (let rest = now; time.length < TIME_DIGITS; rest = Math.floor(rest / 1_024)) time = pairOf(rest % 1_024) + time
  return `${queue}-${time}${base32(random)}` as TaskId
}

/** Reads the queue and the creation time from an id. Returns undefined if the string is not a task id. */
export function readTaskId(
  text: string,
): { readonly id: TaskId; readonly queue: string; readonly createdAt: number } | undefined {
  const dash = text.lastIndexOf('-')
  const queue = text.slice(0, Math.max(dash, 0))
  const unique = text.slice(dash + 1)
  if (!QUEUE_NAME.test(queue) || !UNIQUE.test(unique)) return undefined
  const createdAt = [...unique.slice(0, TIME_DIGITS)].reduce((sum, digit) => sum * 32 + ALPHABET.indexOf(digit), 0)
  return { id: text as TaskId, queue, createdAt }
}

/** Returns the string as a task id. @throws BullpenError `task_not_found` if it is not one. */
export function taskId(text: string): TaskId {
  const read = readTaskId(text)
  if (read === undefined) {
    throw new BullpenError(
      'task_not_found',
      `${JSON.stringify(text)} is not a task id; one looks like 'cpu-01jd3v7n8q0000000000000000'`,
    )
  }
  return read.id
}

/** Returns the two digits that encode the lowest ten bits. */
function pairOf(bits: number): string {
  return PAIRS[bits & 1_023] ?? ''
}

/** Encodes 80 bits as 16 digits. */
function base32(bytes: Uint8Array): string {
  let text = ''
  let bits = 0
  // How many of the bits are not encoded yet.
  let left = 0
  for (let i = 0; i < ID_RANDOM_BYTES; i++) {
    bits = (bits << 8) | (bytes[i] ?? 0)
    left += 8
    if (left < 10) continue
    left -= 10
    text += pairOf(bits >>> left)
  }
  return text
}
