// Reads what a handler has thrown. It may be anything, such as an error whose getters throw, or a Proxy that has been revoked.

/** How many nested causes are read. A cause may refer to itself. */
const MAX_CAUSES = 5

/** How many characters of a thrown value are shown. */
const MAX_SHOWN = 200

const UNREADABLE = 'an unreadable error: its own getters throw'

/**
 * Returns the value itself if all that a classifier or a logger reads of it can be read, and otherwise an Error that says so. The name,
 * the stack and the causes of an error are read, and so are its own fields.
 */
export function readable(thrown: unknown): unknown {
  return isReadable(thrown, 0) ? thrown : new Error(UNREADABLE)
}

function isReadable(thrown: unknown, depth: number): boolean {
  try {
    if (!(thrown instanceof Error)) return true
    const { name, message, stack, cause } = thrown
    for (const field of Object.keys(thrown)) void Reflect.get(thrown, field)
    void `${name} ${message} ${stack}`
    return cause === undefined || depth === MAX_CAUSES || isReadable(cause, depth + 1)
  } catch {
    return false
  }
}

/** Returns the thrown value if it is an Error, and otherwise one that describes it. Never throws. */
export function errorOf(thrown: unknown): Error {
  const value = readable(thrown)
  return value instanceof Error ? value : new Error(`the handler threw ${describe(value)}, which is not an Error`)
}

/** Returns the message of an error, or the text of any other value. Never throws. */
export function messageOf(thrown: unknown): string {
  const value = readable(thrown)
  if (value instanceof Error) return value.message
  try {
    return String(value)
  } catch {
    return typeof value
  }
}

function describe(value: unknown): string {
  if (typeof value === 'bigint' || typeof value === 'symbol') return String(value)
  if (typeof value === 'function') return 'a function'
  let parts = 0
  try {
    // A part takes at least one character. How many levels JSON.stringify can write depends on the size of the stack.
    const text = JSON.stringify(value, (_, part) => (++parts > MAX_SHOWN ? null : part)) ?? typeof value
    return text.slice(0, MAX_SHOWN)
  } catch {
    return typeof value
  }
}
