// Generates values that match a JSON Schema of the OpenAPI document.
import fc from 'fast-check'

export interface Schema {
  readonly $ref?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
}

export interface Vocabulary {
  /** Returns the schema to which a `$ref` refers. */
  readonly resolve: (reference: string) => Schema
  /** Texts that are valid in some places, such as durations and the names of queues. JSON Schema does not describe their form. */
  readonly words: readonly string[]
}

const MAX_ITEMS = 5
const MAX_LENGTH = 64
const MAX_OPTIONAL = 2
/** A schema may contain itself, as an item of an array. Arrays below this depth are empty. */
const MAX_DEPTH = 2

export function valuesOf(schema: Schema, vocabulary: Vocabulary, depth = 0): fc.Arbitrary<unknown> {
  const { $ref, anyOf, oneOf, type } = schema
  const alternatives = anyOf ?? oneOf
  if ($ref !== undefined) return valuesOf(vocabulary.resolve($ref), vocabulary, depth)
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum !== undefined) return fc.constantFrom(...schema.enum)
  if (alternatives !== undefined) return fc.oneof(...alternatives.map((each) => valuesOf(each, vocabulary, depth)))
  switch (type) {
    case 'integer':
      return fc.integer(numberBounds(schema))
    case 'number':
      return fc.double({ ...numberBounds(schema), noNaN: true })
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'string':
      return texts(schema, vocabulary.words)
    case 'array':
      if (depth === MAX_DEPTH) return fc.constant([])
      return fc.array(valuesOf(schema.items ?? {}, vocabulary, depth + 1), {
        maxLength: Math.min(schema.maxItems ?? MAX_ITEMS, MAX_ITEMS),
      })
    case 'object':
      return objects(schema, vocabulary, depth)
    default:
      return fc.jsonValue()
  }
}

function numberBounds({ minimum, maximum }: Schema) {
  return { ...(minimum === undefined ? {} : { min: minimum }), ...(maximum === undefined ? {} : { max: maximum }) }
}

function texts({ format, pattern, minLength = 0, maxLength = MAX_LENGTH }: Schema, words: readonly string[]) {
  if (format === 'date-time') return fc.date({ noInvalidDate: true }).map((date) => date.toJSON())
  if (format === 'email') return fc.emailAddress()
  if (pattern !== undefined) return fc.stringMatching(new RegExp(pattern))
  return fc.oneof(fc.constantFrom(...words), fc.string({ minLength, maxLength: Math.min(maxLength, MAX_LENGTH) }))
}

/** An object has at most two of its optional properties, because JSON Schema does not say which of them exclude each other. */
function objects(
  { properties = {}, required = [], additionalProperties }: Schema,
  vocabulary: Vocabulary,
  depth: number,
) {
  const optional = Object.keys(properties).filter((name) => !required.includes(name))
  const all = fc.record(
    Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, valuesOf(schema, vocabulary, depth)])),
  )
  const omitted = fc.shuffledSubarray(optional, { minLength: Math.max(0, optional.length - MAX_OPTIONAL) })
  const named = fc
    .tuple(all, omitted)
    .map(([values, without]) => Object.fromEntries(Object.entries(values).filter(([name]) => !without.includes(name))))
  if (typeof additionalProperties !== 'object') return named
  const others = fc.dictionary(fc.string({ maxLength: 8 }), valuesOf(additionalProperties, vocabulary, depth), {
    maxKeys: 3,
  })
  return fc.tuple(others, named).map(([more, known]) => ({ ...more, ...known }))
}
