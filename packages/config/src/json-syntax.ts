// Finds the place where a text stops being JSON. The messages of JSON.parse quote the text around that place, which may be a secret.
import type { z } from 'zod'

export interface Place {
  /** The first line is 1. */
  readonly line: number
  /** The first character of a line is 1. */
  readonly column: number
}

const SPACE = /[ \t\n\r]*/y
const STRING = /"(?:[^"\\\p{Cc}]|[\u007f-\u009f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy
const NUMBER_OR_WORD = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y

const PROTO = '__proto__'

/** What may come next. After `[` and `{`, the list or object may also end. */
type Next = 'value' | 'first value' | 'key' | 'first key' | 'colon' | 'comma'

/** Returns the place of the first character that JSON does not allow, or undefined if the text is JSON. */
export function jsonSyntaxError(text: string): Place | undefined {
  const open: ('[' | '{')[] = []
  let next: Next = 'value'
  let at = 0

  const skip = (token: RegExp): boolean => {
    token.lastIndex = at
    const isFound = token.test(text)
    if (isFound) at = token.lastIndex
    return isFound
  }
  const skipOne = (character: string): boolean => {
    const isFound = text[at] === character
    if (isFound) at += 1
    return isFound
  }
  const close = (): boolean => {
    const isClosed = skipOne(open.at(-1) === '[' ? ']' : '}')
    if (isClosed) open.pop()
    return isClosed
  }

  /** Reads a token, and returns what may come after it, or undefined if the token is not allowed. */
  function read(): Next | undefined {
    switch (next) {
      case 'first value':
        return close() ? 'comma' : readValue()
      case 'value':
        return readValue()
      case 'first key':
        return close() ? 'comma' : readKey()
      case 'key':
        return readKey()
      case 'colon':
        return skipOne(':') ? 'value' : undefined
      case 'comma':
        if (close()) return 'comma'
        if (!skipOne(',')) return undefined
        return open.at(-1) === '[' ? 'value' : 'key'
    }
  }

  const readKey = (): Next | undefined => (skip(STRING) ? 'colon' : undefined)

  function readValue(): Next | undefined {
    if (skipOne('[')) {
      open.push('[')
      return 'first value'
    }
    if (skipOne('{')) {
      open.push('{')
      return 'first key'
    }
    return skip(STRING) || skip(NUMBER_OR_WORD) ? 'comma' : undefined
  }

  for (;;) {
    skip(SPACE)
    if (next === 'comma' && open.length === 0) return at === text.length ? undefined : placeOf(text, at)
    const after = read()
    if (after === undefined) return placeOf(text, at)
    next = after
  }
}

/** Says where a setting that is given as a text stops being JSON, as a part of a sentence. Returns '' for any other setting. */
export function jsonFault(given: unknown): string {
  const place = typeof given === 'string' ? jsonSyntaxError(given) : undefined
  return place === undefined ? '' : `; the text is not valid JSON: see line ${place.line}, column ${place.column}`
}

/**
 * Returns the value of a setting that may be given as JSON. A text that is not JSON is returned unchanged, so that the schema
 * rejects it. A schema passes its context, so that the name `__proto__` is rejected, which `z.record` would drop.
 */
export function parseJson(given: unknown, context?: z.core.$RefinementCtx): unknown {
  const value = typeof given === 'string' && jsonSyntaxError(given) === undefined ? JSON.parse(given) : given
  if (typeof value === 'object' && value !== null && Object.hasOwn(value, PROTO)) {
    context?.addIssue({ code: 'custom', path: [PROTO], message: 'not a name', input: value })
  }
  return value
}

function placeOf(text: string, at: number): Place {
  const before = text.slice(0, at).split('\n')
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1 }
}
