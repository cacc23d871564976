// Generates valid requests for every operation of an OpenAPI document.
import fc from 'fast-check'
import { type Schema, type Vocabulary, valuesOf } from './schema-values.fixture.ts'

interface Parameter {
  readonly in: 'path' | 'query' | 'header'
  readonly name: string
  readonly required?: boolean
  readonly schema: Schema
}

type Content = Readonly<Record<string, { readonly schema: Schema; readonly examples?: object }>>

interface OperationObject {
  readonly parameters: readonly Parameter[]
  readonly requestBody?: { readonly required: boolean; readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content: Content }>>
}

export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationObject>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

type Pair = readonly [name: string, value: string]

/** A request before it is written as HTTP. */
export interface ValidRequest {
  readonly method: string
  readonly path: string
  readonly query: readonly Pair[]
  readonly headers: readonly Pair[]
  /** Undefined without a body. */
  readonly body: unknown
  /** The codes of the problems that the document lists for this operation. */
  readonly codes: readonly string[]
}

const WORD_WEIGHT = 10
const BODY_WEIGHT = 4

/** Generates requests for all operations, more often for those with a body. `words` are texts that are valid in some places. */
export function requestsOf(document: OpenApiDocument, words: readonly string[]): fc.Arbitrary<ValidRequest> {
  const { schemas } = document.components
  const vocabulary: Vocabulary = {
    // The given words are repeated, because the document quotes many that are valid nowhere.
    words: [...Array.from({ length: WORD_WEIGHT }, () => words).flat(), ...quotedIn(document)],
    resolve: (reference) => schemas[reference.slice(reference.lastIndexOf('/') + 1)] ?? {},
  }
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  )
  return fc.oneof(
    ...operations.map((each) => ({
      weight: each.operation.requestBody === undefined ? 1 : BODY_WEIGHT,
      arbitrary: requestsFor(each, vocabulary),
    })),
  )
}

/** Returns the examples in the document's descriptions, such as '30s'. */
function quotedIn(document: OpenApiDocument): readonly string[] {
  const found = JSON.stringify(document).matchAll(/['`]([^'`"\\ ]{1,30})['`]/g)
  return [...new Set(Array.from(found, ([, word = '']) => word))]
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

function requestsFor(
  { path, method, operation }: { path: string; method: string; operation: OperationObject },
  vocabulary: Vocabulary,
): fc.Arbitrary<ValidRequest> {
  const values = (place: Parameter['in']) => {
    const parameters = operation.parameters.filter((each) => each.in === place)
    const arbitraries = parameters.map(({ name, schema }) => [name, valuesOf(schema, vocabulary).map(asText)] as const)
    const requiredKeys = parameters.filter(({ required }) => required).map(({ name }) => name)
    const withOptional = fc.record<Record<string, string>>(Object.fromEntries(arbitraries), { requiredKeys })
    const required = fc.record(Object.fromEntries(arbitraries.filter(([name]) => requiredKeys.includes(name))))
    return fc.oneof({ weight: 2, arbitrary: required }, { weight: 1, arbitrary: withOptional })
  }
  const schema = operation.requestBody?.content['application/json']?.schema
  const body = schema === undefined ? fc.constant(undefined) : valuesOf(schema, vocabulary)
  const codes = Object.values(operation.responses).flatMap(({ content }) =>
    Object.keys(content['application/problem+json']?.examples ?? {}),
  )
  return fc.tuple(values('path'), values('query'), values('header'), body).map(([inPath, query, headers, value]) => ({
    method,
    path: path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent((inPath[name] ?? '').toWellFormed())),
    query: Object.entries(query),
    headers: Object.entries(headers),
    body: value,
    codes,
  }))
}
