// Refuses objects with keys that could change prototypes. JSON.parse creates such keys as own properties, but a later copy or merge could
// write to prototypes, and a schema of a record drops `__proto__` without a word.
import { BullpenError } from './errors.ts'
import { fieldErrorText, jsonPointer } from './field-error.ts'

/** Returns the path from an object to a key of it that could change prototypes, or undefined if there is none. */
export function prototypeKeyOf(value: object): readonly string[] | undefined {
  if (Object.hasOwn(value, '__proto__')) return ['__proto__']
  const inner: unknown = Object.getOwnPropertyDescriptor(value, 'constructor')?.value
  return isObject(inner) && Object.hasOwn(inner, 'prototype') ? ['constructor', 'prototype'] : undefined
}

/** Returns the error about a key that {@link prototypeKeyOf} has found, at this path in the body. */
export function prototypeKeyError(path: readonly string[]): BullpenError {
  const message =
    "'__proto__' and 'constructor.prototype' are not accepted as keys, because they could change prototypes; use another key"
  const error = { pointer: jsonPointer(path), message }
  return new BullpenError('invalid_request', fieldErrorText(error), { errors: [error] })
}

/** A value as JSON represents it, and the key under which another one contains it. */
interface Place {
  readonly value: object
  readonly outer: Place | undefined
  readonly key: string
  readonly depth: number
}

/** JSON.stringify fails at fewer levels, so a value that has more of them, such as one that contains itself, is never stored. */
const MAX_DEPTH = 20_000

/**
 * Refuses a value whose JSON, which is what is stored, contains such a key at any depth. A `toJSON` method may add a key or leave one out.
 * `base` is the path of the value in the body. A value that JSON cannot represent is not refused here.
 *
 * @throws BullpenError `invalid_request`, with the place of the key.
 */
export function refusePrototypeKeys(value: unknown, base: readonly string[] = []): void {
  const found = pathOfKey(value)
  if (found !== undefined) throw prototypeKeyError([...base, ...found])
}

function pathOfKey(given: unknown): readonly string[] | undefined {
  // A deeply nested value would overflow the stack of a recursion.
  const left: Place[] = []
  const add = (unwritten: unknown, key: string, outer: Place | undefined): void => {
    const value = jsonForm(unwritten, key)
    // The properties of binary data, of which there may be very many, are numbers.
    if (!isObject(value) || ArrayBuffer.isView(value)) return
    left.push({ value, outer, key, depth: outer === undefined ? 0 : outer.depth + 1 })
  }
  try {
    add(given, '', undefined)
    for (let place = left.pop(); place !== undefined && place.depth < MAX_DEPTH; place = left.pop()) {
      const found = prototypeKeyOf(place.value)
      if (found !== undefined) return [...pathTo(place), ...found]
      if (Array.isArray(place.value)) {
        for (const [i, inner] of place.value.entries()) add(inner, `${i}`, place)
      } else {
        const members = place.value as Readonly<Record<string, unknown>>
        for (const key in members) if (Object.hasOwn(members, key)) add(members[key], key, place)
      }
    }
  } catch {
    // A getter or a toJSON method has thrown.
  }
  return undefined
}

/** Returns what JSON.stringify writes in place of the value. */
function jsonForm(value: unknown, key: string): unknown {
  if (!isObject(value) || ArrayBuffer.isView(value)) return value
  const { toJSON } = value as { readonly toJSON?: unknown }
  return typeof toJSON === 'function' ? toJSON.call(value, key) : value
}

function pathTo(place: Place): readonly string[] {
  const path: string[] = []
  for (let each = place; each.outer !== undefined; each = each.outer) path.push(each.key)
  return path.reverse()
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
