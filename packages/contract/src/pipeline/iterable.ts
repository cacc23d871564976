// Checks whether a value can be the source of a pipeline, and describes a value that cannot.
import type { AnyIterable } from './pipeline-definition.ts'

export const EXPECTED_ITERABLE =
  'expected an iterable, such as an array or a generator, or an async iterable, such as a stream'

/** A string counts as a single value, because its characters are rarely meant as items. */
export function isIterable(value: unknown): value is AnyIterable<unknown> {
  return typeof value === 'object' && value !== null && (Symbol.asyncIterator in value || Symbol.iterator in value)
}

/** Describes a value that is not iterable, for error messages. */
export function described(value: unknown): string {
  if (typeof value === 'string')
    return `the string ${JSON.stringify(value.length <= 50 ? value : `${value.slice(0, 50)}…`)}`
  if (value === null || typeof value !== 'object') return typeof value === 'function' ? 'a function' : String(value)
  return value instanceof Promise ? 'a promise' : 'an object that cannot be iterated'
}
