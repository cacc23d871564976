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

/** How many random bytes an id needs. */
export const ID_RANDOM_BYTES = 10

/** Creates an id. `now` is in milliseconds since 1970, and `random` contains at least {@link ID_RANDOM_BYTES} random bytes. */
export function createTaskId(queue: string, now: number, random: Uint8Array): TaskId {
  let time = ''
  for (let rest = now, digit = 0; digit < TIME_DIGITS; digit++, rest = Math.floor(rest / 32)) {
    time = ALPHABET.charAt(rest % 32) + time
  }
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

/** Encodes 80 bits as 16 characters. Every five bytes become eight characters. */
function base32(bytes: Uint8Array): string {
  let text = ''
  for (let start = 0; start < ID_RANDOM_BYTES; start += 5) {
    let high = 0
    for (let i = 0; i < 5; i++) high = high * 256 + (bytes[start + i] ?? 0)
    let part = ''
    for (let i = 0; i < 8; i++, high = Math.floor(high / 32)) part = ALPHABET.charAt(high % 32) + part
    text += part
  }
  return text
}
