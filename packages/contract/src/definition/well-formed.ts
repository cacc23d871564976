// Recognises text that UTF-8 cannot represent.

/** Half of a surrogate pair. Redis would receive the same bytes for each of them, so that different keys would become one. */
const UNPAIRED_SURROGATE = /\p{Cs}/u

export const WELL_FORMED_RULE = 'expected well-formed Unicode text, without unpaired surrogates'

export function isWellFormed(text: string): boolean {
  return !UNPAIRED_SURROGATE.test(text)
}
