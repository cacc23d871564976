// Recognises results that must be awaited.

/** Returns a promise if the value is one, or has a method `then` like one, and otherwise undefined. */
export function promiseOf(value: unknown): Promise<unknown> | undefined {
  if (value instanceof Promise) return value
  const isThenable = typeof value === 'object' && value !== null && typeof Reflect.get(value, 'then') === 'function'
  return isThenable ? Promise.resolve(value) : undefined
}
