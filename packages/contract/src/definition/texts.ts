// Defines which characters the texts of callers may contain, in two kinds: names, and free texts. The schemas of texts use these kinds, so
// that no text breaks a script, a line of a log, or a terminal.
import { z } from 'zod'

/** Half of a surrogate pair. Redis would receive the same bytes for each of them, so that different keys would become one. */
const UNPAIRED_SURROGATE = /\p{Cs}/u
/** Control characters, line and paragraph separators, and what changes the direction of the text that follows, such as U+202E. */
const UNFIT_IN_NAME = /[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u
/** Control characters other than tabs and line breaks. */
const UNFIT_IN_TEXT = /(?![\t\r\n])\p{Cc}/u

/** Returns what is wrong with a name that a caller has chosen, such as a key, as "expected …", or undefined if it is valid. */
export function nameProblem(name: string): string | undefined {
  if (UNPAIRED_SURROGATE.test(name)) return WELL_FORMED_RULE
  return UNFIT_IN_NAME.test(name) ? NAME_RULE : undefined
}

/** Returns what is wrong with a key that a handler passes, or undefined. Both lengths are in UTF-16 code units. */
export function keyProblem(key: unknown, shortest: number, longest: number): string | undefined {
  if (typeof key === 'string' && key.length >= shortest && key.length <= longest) {
    const problem = nameProblem(key)
    return problem && `${problem}, got ${JSON.stringify(key)}`
  }
  const lengths = shortest === 0 ? `at most ${longest}` : `${shortest} to ${longest}`
  return `expected a string of ${lengths} characters, got ${typeof key === 'string' ? `${key.length} characters` : typeof key}`
}

/** A name that a caller has chosen, in one line. `longest` is in UTF-16 code units. */
export const nameText = (longest: number) =>
  z
    .string()
    .min(1)
    .max(longest)
    .refine((name) => !UNFIT_IN_NAME.test(name), NAME_RULE)
    .refine(isWellFormed, WELL_FORMED_RULE)

/**
 * A text that may have several lines and run in any direction. A program that shows the text must neutralise line breaks and direction
 * changes. `longest` is in UTF-16 code units.
 */
export const freeText = (longest: number) =>
  z
    .string()
    .max(longest)
    .refine((text) => !UNFIT_IN_TEXT.test(text), TEXT_RULE)
    .refine(isWellFormed, WELL_FORMED_RULE)

const WELL_FORMED_RULE = 'expected well-formed Unicode text, without unpaired surrogates'
const NAME_RULE =
  'expected text without line breaks, other control characters, or characters that change the direction of text'
const TEXT_RULE = 'expected text without control characters other than tabs and line breaks'

function isWellFormed(text: string): boolean {
  return !UNPAIRED_SURROGATE.test(text)
}
