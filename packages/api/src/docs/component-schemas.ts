// Converts zod schemas into the JSON Schemas of an OpenAPI document.
import { waitSchema } from '@bullpen/contract/internal'
import { z } from 'zod'

export type Json = Readonly<Record<string, unknown>>

/** Returns a reference to a component. */
export const reference = (component: string) => ({ $ref: `#/components/schemas/${component}` })

/** Omits the ids from schemas' metadata, because an id that an application gives to its own schema could clash with a component. */
class Descriptions extends z.core.$ZodRegistry<z.core.GlobalMeta> {
  override get(schema: z.core.$ZodType) {
    const { id: _, ...meta } = z.globalRegistry.get(schema) ?? {}
    return meta as never
  }
}

interface Converted {
  readonly zodSchema: z.core.$ZodType
  readonly jsonSchema: z.core.JSONSchema.BaseSchema
}

const WAIT_TEXT: z.core.JSONSchema.BaseSchema = {
  type: 'string',
  pattern: String.raw`^\d{1,5}(\.\d{1,3})?(ms|s)$`,
  examples: ['10s', '500ms'],
}

const conversion = (io: 'input' | 'output') =>
  ({
    io,
    target: 'draft-2020-12',
    // A catalogue may contain any schema. If JSON Schema cannot express a schema, it is converted to a schema that accepts
    // anything.
    unrepresentable: 'any',
    metadata: new Descriptions(),
    override: ({ zodSchema, jsonSchema }: Converted) => {
      // The schema's output is a number of seconds, but a request may also contain a duration.
      if (zodSchema === waitSchema) {
        const { type = 'number', minimum, maximum } = jsonSchema
        for (const keyword of ['type', 'minimum', 'maximum'] as const) delete jsonSchema[keyword]
        jsonSchema.anyOf = [{ type, minimum, maximum } as z.core.JSONSchema.BaseSchema, WAIT_TEXT]
      }
      // z.int() adds the range of JavaScript's safe integers, which is not part of the contract.
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
      // Responses may gain fields in later versions, and a generated client must not reject these fields.
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties
    },
  }) as const

/** Returns the schemas by name. A schema that is used in several places or that contains itself becomes a separate component. */
export function components(registry: z.core.$ZodRegistry<{ id: string }>, io: 'input' | 'output'): Json {
  const { schemas } = z.toJSONSchema(registry, { ...conversion(io), uri: (id) => `#/components/schemas/${id}` })
  const shared = (id: string) => `Shared.${io}.${id}`
  // zod puts all shared schemas into one schema and refers to them by URIs with two fragments, which cannot be resolved.
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

/** Converts a schema that has no name. */
export function inline(schema: z.ZodType, io: 'input' | 'output'): Json {
  return withoutIdentity(z.toJSONSchema(schema, conversion(io)))
}

function withoutIdentity(schema: object): Json {
  const { $schema: _, $id: __, id: ___, ...rest } = schema as Record<string, unknown>
  return rest
}

/** Returns the schemas in a request body that become components: one for each task or, if the body itself has a name, the body. */
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
