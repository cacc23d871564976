// Finds the values of an input whose schemas are marked as sensitive: `z.string().meta({ sensitive: true })`.
import { z } from 'zod'

type Schema = z.core.$ZodType
type Visit = (schema: Schema, value: unknown) => void

const known = new WeakMap<Schema, boolean>()

/** Returns whether any part of the schema is marked as sensitive. The answer is remembered. */
export function hasSensitiveParts(schema: Schema): boolean {
  const answer = known.get(schema) ?? isAnySensitive(schema, new Set())
  known.set(schema, answer)
  return answer
}

/** Returns all strings, numbers, dates and keys within the sensitive parts of `value`, as strings. Names from the schema do not count. */
export function sensitiveValues(schema: Schema, value: unknown): ReadonlySet<string> {
  const found = new Set<string>()
  const visit: Visit = (part, of) => {
    // A schema can only be recursive through a value, so the walk ends.
    if (of === undefined || of === null) return
    if (isSensitive(part)) addLeaves(of, namesIn(part, new Set()), found)
    else visitParts(part, of, visit)
  }
  visit(schema, value)
  return found
}

/** Returns whether the schema itself is marked as sensitive. */
export function isSensitive(schema: Schema): boolean {
  return z.globalRegistry.get(schema)?.['sensitive'] === true
}

function isAnySensitive(schema: Schema, seen: Set<Schema>): boolean {
  if (seen.has(schema)) return false
  seen.add(schema)
  return isSensitive(schema) || partsOf(schema).some((part) => isAnySensitive(part, seen))
}

/** Returns the schemas that the schema consists of. */
export function partsOf(schema: Schema): readonly Schema[] {
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'object':
      return [...Object.values(def.shape), ...(def.catchall === undefined ? [] : [def.catchall])]
    case 'array':
      return [def.element]
    case 'tuple':
      return [...def.items, ...(def.rest === null ? [] : [def.rest])]
    case 'record':
      return [def.keyType, def.valueType]
    case 'union':
      return def.options
    case 'intersection':
      return [def.left, def.right]
    case 'pipe':
      return [def.in, def.out]
    case 'lazy':
      return [def.getter()]
    default:
      return 'innerType' in def ? [def.innerType as Schema] : []
  }
}

/** Calls `visit` with each part of the schema and the part of the value that it describes. */
function visitParts(schema: Schema, value: unknown, visit: Visit): void {
  const { def } = (schema as z.core.$ZodTypes)._zod
  if (def.type === 'object' && isObject(value)) {
    const { shape, catchall } = def
    for (const [name, each] of Object.entries(value)) {
      // An input may have a field named `constructor`, which every object inherits.
      const part = Object.hasOwn(shape, name) ? shape[name] : catchall
      if (part !== undefined) visit(part, each)
    }
  } else if (def.type === 'array' && Array.isArray(value)) {
    for (const each of value) visit(def.element, each)
  } else if (def.type === 'tuple' && Array.isArray(value)) {
    for (const [i, each] of value.entries()) {
      const part = def.items[i] ?? def.rest
      if (part !== null) visit(part, each)
    }
  } else if (def.type === 'record' && isObject(value)) {
    for (const [name, each] of Object.entries(value)) {
      visit(def.keyType, name)
      visit(def.valueType, each)
    }
  } else {
    // The parts of a union, a pipe or a wrapper such as `.optional()` describe the same value. Of a union, any option may apply.
    for (const part of isContainer(def.type) ? [] : partsOf(schema)) visit(part, value)
  }
}

function isContainer(type: string): boolean {
  return type === 'object' || type === 'array' || type === 'tuple' || type === 'record'
}

/** Returns the names that the schema gives to fields and to the keys of records. They are not part of any input, so they are no secrets. */
function namesIn(schema: Schema, seen: Set<Schema>): ReadonlySet<string> {
  if (seen.has(schema)) return new Set()
  seen.add(schema)
  const { def } = (schema as z.core.$ZodTypes)._zod
  const own = def.type === 'object' ? Object.keys(def.shape) : def.type === 'record' ? closedKeysOf(def.keyType) : []
  return new Set([...own, ...partsOf(schema).flatMap((part) => [...namesIn(part, seen)])])
}

/** Returns the keys that a record may have, if its schema lists them. */
function closedKeysOf(keyType: Schema): readonly string[] {
  const { def } = (keyType as z.core.$ZodTypes)._zod
  if (def.type === 'enum') return Object.values(def.entries).map(String)
  return def.type === 'literal' ? def.values.map(String) : []
}

/** `names` are the keys that are not added. */
function addLeaves(value: unknown, names: ReadonlySet<string>, into: Set<string>): void {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'bigint') into.add(String(value))
  else if (value instanceof Date) for (const form of formsOfDate(value)) into.add(form)
  else if (isObject(value)) {
    for (const [key, each] of Object.entries(value)) {
      if (!Array.isArray(value) && !names.has(key)) into.add(key)
      addLeaves(each, names, into)
    }
  }
}

/** Returns the date as a template literal and JSON write it, and without its time. */
function formsOfDate(date: Date): readonly string[] {
  if (Number.isNaN(date.getTime())) return []
  const iso = date.toISOString()
  return [String(date), iso, iso.slice(0, iso.indexOf('T'))]
}

/** Arrays are objects too. */
function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}
