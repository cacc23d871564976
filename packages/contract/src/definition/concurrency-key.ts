// Defines what a concurrency key may be, in calls and in the settings of a queue.
import { z } from 'zod'
import { isWellFormed, WELL_FORMED_RULE } from './well-formed.ts'

/** The longest concurrency key, in Unicode code points. */
const MAX_LENGTH = 128

// One of them, which no text contains, separates the parts of a lane's name in the store.
const CONTROL_CHARACTER = /\p{Cc}/u

export const concurrencyKeySchema = z
  .string()
  .min(1)
  .max(MAX_LENGTH)
  .refine(
    (key) => !CONTROL_CHARACTER.test(key),
    'expected a concurrency key without line breaks and other control characters',
  )
  .refine(isWellFormed, WELL_FORMED_RULE)

/** Checks a key of the queue's setting `setting`. `fail` throws an error that names the queue. */
export function checkConcurrencyKey(setting: string, key: string, fail: (problem: string) => never): void {
  const { length } = Array.from(key)
  if (length < 1 || length > MAX_LENGTH) {
    fail(`${setting} has a concurrency key of ${length} characters; expected 1 to ${MAX_LENGTH}`)
  }
  if (CONTROL_CHARACTER.test(key)) {
    fail(
      `${setting} has the concurrency key ${JSON.stringify(key)}; expected a key without line breaks and other control characters`,
    )
  }
  if (!isWellFormed(key)) {
    fail(`${setting} has the concurrency key ${JSON.stringify(key)}; ${WELL_FORMED_RULE}`)
  }
}
