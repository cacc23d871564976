// Writes JSON that a terminal shows as it is.

/** Control characters, line and paragraph separators, and what changes the direction of the text that follows, such as U+202E. */
const NOT_SHOWN = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu

/**
 * Returns the JSON of a value in one line. Texts come from tasks and workers, and JSON.stringify leaves characters such as U+009B in them,
 * which begin a command to a terminal. They are escaped, so that JSON.parse returns the same value.
 */
export function jsonText(value: object): string {
  return JSON.stringify(value).replaceAll(NOT_SHOWN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
