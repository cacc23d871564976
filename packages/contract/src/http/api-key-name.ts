// Defines the names of API keys, which commands, settings and messages use in place of the keys.

/** The length of the shortest API key. */
export const MIN_API_KEY_LENGTH = 20

/** A name is shorter than any API key, so that a key that was given in place of a name is rejected, and never stored or logged. */
export const API_KEY_NAME = /^[a-z0-9][a-z0-9_-]{0,18}$/

export const API_KEY_NAME_FORM =
  'a lower-case letter or a digit, followed by lower-case letters, digits, hyphens and underscores, at most 19 characters'
