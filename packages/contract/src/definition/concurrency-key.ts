// Defines what a concurrency key may be, in calls and in the settings of a queue.
import { nameProblem, nameText } from './texts.ts'

/** The longest concurrency key, in Unicode code points. */
const MAX_LENGTH = 128

// A control character, which no name contains, separates the parts of a lane's name in the store.
export const concurrencyKeySchema = nameText(MAX_LENGTH)

/** Checks a key of the queue's setting `setting`. `fail` throws an error that names the queue. */
export function checkConcurrencyKey(setting: string, key: string, fail: (problem: string) => never): void {
  const { length } = Array.from(key)
  if (length < 1 || length > MAX_LENGTH) {
    fail(`${setting} has a concurrency key of ${length} characters; expected 1 to ${MAX_LENGTH}`)
  }
  const problem = nameProblem(key)
  if (problem !== undefined) fail(`${setting} has the concurrency key ${JSON.stringify(key)}; ${problem}`)
}
