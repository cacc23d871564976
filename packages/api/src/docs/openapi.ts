// The OpenAPI 3.1 document, generated from the route table and the contracts of the catalogue.
//
// Built here and not by @fastify/swagger with fastify-type-provider-zod, because their route transform cannot express what
// clients rely on: it drops the headers of answers and the examples of problems, describes query parameters by their text
// instead of their parsed type, adds no discriminator to the body of an enqueue, leaves dangling references to recursive
// schemas, and names a second component for everything that is both input and output. Their document is only served here.
import { BullpenError, type Catalogue, type ErrorCode } from '@bullpen/contract'
import { attemptViewSchema, HTTP_STATUS, PROBLEM_CONTENT_TYPE, problemSchema } from '@bullpen/contract/internal'
import { z } from 'zod'
import { problemOf } from '../http/problems/problem.ts'
import type { Answer, HeaderNote, Route } from '../http/routes/route.ts'
import { components, inline, type Json, reference } from './component-schemas.ts'

export function openApiDocument(catalogue: Catalogue, routes: readonly Route[], version: string): Json {
  const inputs = z.registry<{ id: string }>()
  const outputs = z.registry<{ id: string }>()
  outputs.add(problemSchema, { id: 'Problem' })
  outputs.add(attemptViewSchema, { id: 'Attempt' })
  for (const { input, output, name } of catalogue.definitions) {
    inputs.add(input, { id: `${name}.Input` })
    outputs.add(output, { id: `${name}.Output` })
  }
  for (const row of routes) {
    for (const option of bodyOptions(row.body)) inputs.add(option.schema, { id: option.id })
    if (row.body !== undefined) nameItself(inputs, row.body)
    for (const { schema } of Object.values(row.answers)) nameItself(outputs, schema)
  }
  const schemas = { ...components(inputs, 'input'), ...components(outputs, 'output'), ...tasks(catalogue) }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Bullpen',
      version,
      description:
        'Enqueue tasks, look them up, wait for them, cancel them, and control the fleet that runs them. Every error is a problem (RFC 9457) with a `code`.',
    },
    security: [{ bearer: [] }],
    paths: paths(catalogue, routes, outputs),
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key.' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'bullpen_session',
          description: 'Set by /board/login for browsers; permits reading only.',
        },
      },
      schemas,
    },
  }
}

/** The shape of each task: the general one with its own input and output. */
function tasks(catalogue: Catalogue): Json {
  return Object.fromEntries(
    catalogue.definitions.map(({ name }) => [
      `${name}.Task`,
      {
        allOf: [
          reference('Task'),
          {
            type: 'object',
            properties: {
              task: { const: name },
              input: reference(`${name}.Input`),
              output: reference(`${name}.Output`),
            },
          },
        ],
      },
    ]),
  )
}

function bodyOptions(body: z.ZodType | undefined): readonly { id: string; schema: z.ZodType }[] {
  if (!(body instanceof z.ZodDiscriminatedUnion)) {
    const id = body && z.globalRegistry.get(body)?.id
    return body === undefined || id === undefined ? [] : [{ id, schema: body }]
  }
  return body.options.flatMap((schema) => {
    if (!(schema instanceof z.ZodObject) || !(schema.shape['task'] instanceof z.ZodLiteral)) return []
    return [{ id: `${String(schema.shape['task'].value)}.Enqueue`, schema }]
  })
}

/** The contract names its answers, and the bodies that do not depend on the catalogue. */
function nameItself(registry: z.core.$ZodRegistry<{ id: string }>, schema: z.ZodType): void {
  const id = z.globalRegistry.get(schema)?.id
  if (id !== undefined) registry.add(schema, { id })
}

function paths(catalogue: Catalogue, routes: readonly Route[], outputs: z.core.$ZodRegistry<{ id: string }>): Json {
  const byPath: Record<string, Record<string, unknown>> = {}
  for (const row of routes) {
    const path = row.path.replaceAll(/:(\w+)/g, '{$1}')
    const methods = byPath[path] ?? {}
    methods[row.method.toLowerCase()] = operation(catalogue, row, outputs)
    byPath[path] = methods
  }
  return byPath
}

function operation(catalogue: Catalogue, row: Route, outputs: z.core.$ZodRegistry<{ id: string }>): Json {
  return {
    operationId: row.operationId,
    tags: [row.tag],
    summary: row.summary,
    ...(row.description === undefined ? {} : { description: row.description }),
    ...(row.access === 'open' ? { security: [] } : {}),
    ...(row.access === 'browser' ? { security: [{ bearer: [] }, { session: [] }] } : {}),
    parameters: [
      ...parametersIn('path', row.params),
      ...parametersIn('query', row.query),
      ...(row.headers ?? []).map((header) => ({ in: 'header', ...header, schema: { type: 'string' } })),
    ],
    ...requestBody(row),
    responses: {
      ...Object.fromEntries(
        Object.entries(row.answers).map(([status, answer]) => [status, answerOf(catalogue, answer, outputs)]),
      ),
      ...problems(row.problems),
    },
  }
}

function requestBody({ body, bodyRequired = true }: Route): Json {
  const schema = bodySchema(body)
  if (schema === undefined) return {}
  return { requestBody: { required: bodyRequired, content: { 'application/json': { schema } } } }
}

function bodySchema(body: z.ZodType | undefined): Json | undefined {
  if (body === undefined) return undefined
  const id = z.globalRegistry.get(body)?.id
  if (id !== undefined) return reference(id)
  const tasks = bodyOptions(body)
  return {
    oneOf: tasks.map((task) => reference(task.id)),
    discriminator: {
      propertyName: 'task',
      mapping: Object.fromEntries(
        tasks.map((task) => [task.id.replace(/\.Enqueue$/, ''), `#/components/schemas/${task.id}`]),
      ),
    },
  }
}

function answerOf(catalogue: Catalogue, answer: Answer, outputs: z.core.$ZodRegistry<{ id: string }>): Json {
  const id = outputs.get(answer.schema)?.id
  return {
    description: answer.description,
    headers: headerNotes([...(answer.headers ?? []), REQUEST_ID]),
    content: { 'application/json': { schema: id === undefined ? inline(answer.schema, 'output') : shape(id) } },
  }

  /** A stored task may be missing from the catalogue of today, so the general shape is one of the alternatives. */
  function shape(component: string): Json {
    return component === 'Task'
      ? { anyOf: [...catalogue.definitions.map(({ name }) => reference(`${name}.Task`)), reference('Task')] }
      : reference(component)
  }
}

function parametersIn(place: 'path' | 'query', schema: z.ZodObject | undefined): readonly Json[] {
  if (schema === undefined) return []
  const { properties = {} } = inline(schema, 'output') as { readonly properties?: Readonly<Record<string, Json>> }
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    in: place,
    name,
    // A parameter with a default is always there once parsed, and may be left out.
    required: place === 'path' || !schema.shape[name]?.safeParse(undefined).success,
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }))
}

function problems(codes: readonly ErrorCode[]): Json {
  const byStatus = Map.groupBy(codes, (code) => HTTP_STATUS[code])
  return {
    ...Object.fromEntries(
      [...byStatus].map(([status, ofStatus]) => [
        String(status),
        {
          description: ofStatus.map((code) => `\`${code}\``).join(', '),
          headers: headerNotes([...(PROBLEM_HEADERS[status] ?? []), REQUEST_ID]),
          content: problemContent(ofStatus),
        },
      ]),
    ),
    default: { description: 'Any other problem.', content: problemContent(['internal_error']) },
  }
}

const REQUEST_ID: HeaderNote = { name: 'X-Request-Id', description: 'The id of the request, as in the logs.' }

const PROBLEM_HEADERS: Readonly<Record<number, readonly HeaderNote[]>> = {
  401: [{ name: 'WWW-Authenticate', description: '`Bearer`.' }],
  503: [{ name: 'Retry-After', description: 'Seconds to wait before sending the request again.' }],
}

function headerNotes(notes: readonly HeaderNote[]): Json {
  return Object.fromEntries(notes.map(({ name, description }) => [name, { description, schema: { type: 'string' } }]))
}

function problemContent(codes: readonly ErrorCode[]): Json {
  const example = (code: ErrorCode) => ({
    value: problemOf(new BullpenError(code, 'What was wrong, where, and what is accepted.'), '4bf92f3577b34da6'),
  })
  return {
    [PROBLEM_CONTENT_TYPE]: {
      schema: reference('Problem'),
      examples: Object.fromEntries(codes.map((code) => [code, example(code)])),
    },
  }
}
