// Says which fields and parameters are accepted in place of an unknown one.
import type { FieldError } from '@bullpen/contract'
import { MAX_ERRORS, nearest } from '@bullpen/contract/internal'
import { z } from 'zod'

const UNKNOWN: readonly string[] = ['unknown field', 'unknown parameter']

/**
 * Returns the errors. The first unknown field of an object gets a message with the nearest accepted name or, if none is similar, with
 * all of them. `unlisted` are names that are not accepted, although the schema has them at its top level.
 */
export function withAcceptedNames(
  schema: z.ZodType,
  errors: readonly FieldError[],
  unlisted: readonly string[] = [],
): readonly FieldError[] {
  const listed = new Set<string>()
  return errors.map((error, i) => {
    // A response does not contain more errors, and a body may have thousands of unknown fields.
    if (i >= MAX_ERRORS) return error
    if (!UNKNOWN.includes(error.message) || 'header' in error) return error
    const path = 'pointer' in error ? pathOf(error.pointer) : [error.parameter]
    const name = path.at(-1) ?? ''
    const known = namesIn(schema, path.slice(0, -1))?.filter((each) => path.length > 1 || !unlisted.includes(each))
    if (known === undefined) return error
    const near = nearest(name, known)
    if (near !== undefined) return { ...error, message: `${error.message}; did you mean ${near}?` }
    const parent = path.slice(0, -1).join('/')
    if (listed.has(parent)) return error
    listed.add(parent)
    const accepted = known.length === 0 ? 'expected none' : `expected ${known.join(', ')}`
    return { ...error, message: `${error.message}; ${accepted}` }
  })
}

/** Returns the names of an object's fields, or undefined if the schema has no object at this path. */
function namesIn(schema: unknown, path: readonly string[]): readonly string[] | undefined {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault) {
    return namesIn(schema.unwrap(), path)
  }
  const [name, ...rest] = path
  if (schema instanceof z.ZodArray) return namesIn(schema.element, rest)
  if (!(schema instanceof z.ZodObject)) return undefined
  return name === undefined ? Object.keys(schema.shape) : namesIn(schema.shape[name], rest)
}

/** Returns the parts of a JSON Pointer. */
function pathOf(pointer: string): readonly string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}
