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

/** An object, and the key under which another one contains it. */
interface Place {
  readonly value: object
  readonly outer: Place | undefined
  readonly key: string
}

/**
 * Refuses a value that contains such a key, at any depth. `base` is the path of the value in the body. An object that contains itself is
 * not refused here.
 *
 * @throws BullpenError `invalid_request`, with the place of the key.
 */
export function refusePrototypeKeys(value: unknown, base: readonly string[] = []): void {
  // A deeply nested value would overflow the stack of a recursion.
  const left: Place[] = isObject(value) ? [{ value, outer: undefined, key: '' }] : []
  const seen = new Set<object>()
  for (let place = left.pop(); place !== undefined; place = left.pop()) {
    seen.add(place.value)
    const found = prototypeKeyOf(place.value)
    if (found !== undefined) throw prototypeKeyError([...base, ...pathTo(place), ...found])
    for (const [key, inner] of Object.entries(place.value)) {
      if (isObject(inner) && !seen.has(inner)) left.push({ value: inner, outer: place, key })
    }
  }
}

function pathTo(place: Place): readonly string[] {
  const path: string[] = []
  for (let each = place; each.outer !== undefined; each = each.outer) path.push(each.key)
  return path.reverse()
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
