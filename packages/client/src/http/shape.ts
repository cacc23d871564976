// Checks whether a JSON value has the shape of a type, without the cost of a schema.

/** Returns whether a value has the type. */
export type Check<T> = (value: unknown) => value is T

/** Checks that there is a value. */
export const anything: Check<unknown> = (value): value is unknown => value !== undefined
export const text: Check<string> = (value) => typeof value === 'string'
export const bool: Check<boolean> = (value) => typeof value === 'boolean'
export const number: Check<number> = (value) => typeof value === 'number'
export const whole: Check<number> = (value): value is number => Number.isSafeInteger(value)
export const time: Check<string> = (value): value is string => text(value) && TIME.test(value)

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/

/** Checks one of several words. Any text is accepted, because a newer API may send words that this client does not know. */
export function word<T extends string>(): Check<T> {
  return text as Check<T>
}

export function oneOf<const T>(choices: readonly T[]): Check<T> {
  return (value): value is T => (choices as readonly unknown[]).includes(value)
}

export function optional<T>(check: Check<T>): Check<T | undefined> {
  return (value): value is T | undefined => value === undefined || check(value)
}

export function listOf<T>(check: Check<T>): Check<T[]> {
  return (value): value is T[] => Array.isArray(value) && value.every(check)
}

/** Checks an object whose keys may be anything. */
export function recordOf<T>(check: Check<T>): Check<Record<string, T>> {
  return (value): value is Record<string, T> => isObject(value) && Object.values(value).every(check)
}

/** Checks every field of a type. Fields that the type does not have are accepted, because a newer API may send them. */
export function shape<T extends object>(fields: { readonly [K in keyof T]-?: Check<T[K] | undefined> }): Check<T> {
  return someOf<T>(fields)
}

/** Checks only these fields of a type. */
export function someOf<T extends object>(fields: { readonly [K in keyof T]?: Check<T[K] | undefined> }): Check<T> {
  const checks = Object.entries(fields) as readonly (readonly [string, Check<unknown>])[]
  return (value): value is T => isObject(value) && checks.every(([name, check]) => check(value[name]))
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
