// Contracts as JSON Schema, in the form that an OpenAPI document holds them.
import { z } from 'zod'

export type Json = Readonly<Record<string, unknown>>

/** Points at a component. */
export const reference = (component: string) => ({ $ref: `#/components/schemas/${component}` })

/** Reads the descriptions that schemas carry, but not their ids: components are named here, by the catalogue. */
class Descriptions extends z.core.$ZodRegistry<z.core.GlobalMeta> {
  override get(schema: z.core.$ZodType) {
    const { id: _, ...meta } = z.globalRegistry.get(schema) ?? {}
    return meta as never
  }
}

const CONVERSION = {
  target: 'draft-2020-12',
  // What JSON Schema can't say is left open rather than refused: a catalogue may hold any schema.
  unrepresentable: 'any',
  metadata: new Descriptions(),
  override: ({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }) => {
    // z.int() says how far JavaScript counts; that is no limit of the contract's.
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  },
} as const

/** Schemas by name. What several share, or what holds itself, becomes a component of its own. */
export function components(registry: z.core.$ZodRegistry<{ id: string }>, io: 'input' | 'output'): Json {
  const { schemas } = z.toJSONSchema(registry, { ...CONVERSION, io, uri: (id) => `#/components/schemas/${id}` })
  const shared = (id: string) => `Shared.${io}.${id}`
  // zod puts shared ones below one schema, under an address with two fragments that nobody can resolve.
  const text = JSON.stringify(schemas).replaceAll(
    /"#\/components\/schemas\/__shared#\/\$defs\/([^"]+)"/g,
    (_, id: string) => JSON.stringify(`#/components/schemas/${shared(id)}`),
  )
  const { __shared, ...named } = JSON.parse(text) as Record<string, Json>
  const defs = Object.entries((__shared?.['$defs'] ?? {}) as Record<string, Json>)
  return Object.fromEntries([
    ...Object.entries(named).map(([id, schema]) => [id, withoutIdentity(schema)]),
    ...defs.map(([id, schema]) => [shared(id), withoutIdentity(schema)]),
  ])
}

/** A schema without a name, where it is used. */
export function inline(schema: z.ZodType, io: 'input' | 'output'): Json {
  return withoutIdentity(z.toJSONSchema(schema, { ...CONVERSION, io }))
}

function withoutIdentity(schema: object): Json {
  const { $schema: _, $id: __, id: ___, ...rest } = schema as Record<string, unknown>
  return rest
}
