// Creates examples of request bodies from their schemas. An example has only the required fields, with the simplest values that are
// accepted.
import { z } from 'zod'

type Schema = z.core.JSONSchema.BaseSchema

/**
 * Returns an example, or undefined if the schema rejects the values that were tried, for example because a string has a custom
 * check.
 */
export function exampleOf(schema: z.ZodType): unknown {
  try {
    const root = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
    const value = simplest(root, root.$defs ?? {})
    return schema.safeParse(value).success ? value : undefined
  } catch {
    // A transform throws or is asynchronous, or the schema is infinitely recursive.
    return undefined
  }
}

function simplest(schema: Schema, definitions: Readonly<Record<string, Schema>>): unknown {
  const part = (of: unknown) => simplest((of ?? {}) as Schema, definitions)
  if (schema.$ref !== undefined)
    return part(schema.$ref === '#' ? undefined : definitions[schema.$ref.slice('#/$defs/'.length)])
  const [declared] = schema.examples ?? []
  if (declared !== undefined) return declared
  if (schema.default !== undefined) return schema.default
  if (schema.const !== undefined) return schema.const
  if (schema.enum !== undefined) return schema.enum[0]
  const [alternative] = schema.oneOf ?? schema.anyOf ?? []
  if (alternative !== undefined) return part(alternative)
  switch (schema.type) {
    case 'object':
      return Object.fromEntries((schema.required ?? []).map((name) => [name, part(schema.properties?.[name])]))
    case 'array':
      return Array.from({ length: schema.minItems ?? 0 }, () => part(schema.items))
    case 'integer':
    case 'number':
      return simplestNumber(schema)
    case 'boolean':
      return true
    case 'string':
      return STRINGS[schema.format ?? ''] ?? 'text'.padEnd(schema.minLength ?? 0, '.').slice(0, schema.maxLength)
    default:
      return null
  }
}

function simplestNumber({ minimum = 1, exclusiveMinimum, maximum = Number.MAX_SAFE_INTEGER }: Schema): number {
  const least = typeof exclusiveMinimum === 'number' ? exclusiveMinimum + 1 : minimum
  return Math.min(Math.max(1, least), maximum)
}

const STRINGS: Readonly<Record<string, string>> = {
  email: 'ann@example.com',
  uri: 'https://example.com',
  uuid: '7d444840-9dc0-41d1-b245-5ffdce74fad2',
  'date-time': '2026-01-01T00:00:00Z',
  date: '2026-01-01',
  time: '00:00:00',
  ipv4: '192.0.2.1',
}
