// zod schemas as the JSON Schemas of an OpenAPI document.
import { z } from 'zod'

export type Json = Readonly<Record<string, unknown>>

/** A reference to a component. */
export const reference = (component: string) => ({ $ref: `#/components/schemas/${component}` })

/** The metadata of schemas without their ids: an id that an application gives its own schema could clash with a component. */
class Descriptions extends z.core.$ZodRegistry<z.core.GlobalMeta> {
  override get(schema: z.core.$ZodType) {
    const { id: _, ...meta } = z.globalRegistry.get(schema) ?? {}
    return meta as never
  }
}

const conversion = (io: 'input' | 'output') =>
  ({
    io,
    target: 'draft-2020-12',
    // A schema that JSON Schema cannot express accepts anything: a catalogue may contain any schema.
    unrepresentable: 'any',
    metadata: new Descriptions(),
    override: ({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }) => {
      // z.int() adds JavaScript's range, which is no limit of the contract.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      // Answers may gain fields; a generated client must not reject them.
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
    },
  }) as const

/** Schemas by name. A schema that several share, or that contains itself, becomes a component of its own. */
export function components(registry: z.core.$ZodRegistry<{ id: string }>, io: 'input' | 'output'): Json {
  const { schemas } = z.toJSONSchema(registry, { ...conversion(io), uri: (id) => `#/components/schemas/${id}` })
  const shared = (id: string) => `Shared.${io}.${id}`
  // zod puts shared schemas into one schema, under addresses with two fragments, which cannot be resolved.
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

/** A schema without a name. */
export function inline(schema: z.ZodType, io: 'input' | 'output'): Json {
  return withoutIdentity(z.toJSONSchema(schema, conversion(io)))
}

function withoutIdentity(schema: object): Json {
  const { $schema: _, $id: __, id: ___, ...rest } = schema as Record<string, unknown>
  return rest
}

/** The schemas in a request body that become components: one for each task, or the body itself if it has a name. */
export function bodyOptions(body: z.ZodType | undefined): readonly { id: string; schema: z.ZodType }[] {
  if (!(body instanceof z.ZodDiscriminatedUnion)) {
    const id = body && z.globalRegistry.get(body)?.id
    return body === undefined || id === undefined ? [] : [{ id, schema: body }]
  }
  return body.options.flatMap((schema) => {
    if (!(schema instanceof z.ZodObject) || !(schema.shape['task'] instanceof z.ZodLiteral)) return []
    return [{ id: `${String(schema.shape['task'].value)}.Enqueue`, schema }]
  })
}
