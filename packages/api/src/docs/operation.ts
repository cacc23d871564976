// Creates one operation of the OpenAPI document from a route, with its parameters, body, responses and problems.
import { BullpenError, type Catalogue, type ErrorCode } from '@bullpen/contract'
import { ERRORS, PROBLEM_CONTENT_TYPE } from '@bullpen/contract/internal'
import { z } from 'zod'
import { problemOf } from '../http/problems/problem.ts'
import type { HeaderNote, Route, RouteResponse } from '../http/routes/route.ts'
import { bodyOptions, inline, type Json, reference } from './component-schemas.ts'
import { exampleOf } from './examples.ts'

export function operation(catalogue: Catalogue, row: Route, outputs: z.core.$ZodRegistry<{ id: string }>): Json {
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
        Object.entries(row.responses).map(([status, response]) => [status, responseOf(catalogue, response, outputs)]),
      ),
      ...problems(row.problems),
    },
  }
}

function requestBody({ body, bodyRequired = true }: Route): Json {
  const schema = bodySchema(body)
  if (schema === undefined) return {}
  return { requestBody: { required: bodyRequired, content: { 'application/json': { schema, ...bodyExamples(body) } } } }
}

/** Returns one example for each task, or one for the body itself. */
function bodyExamples(body: z.ZodType | undefined): Json {
  const examples = bodyOptions(body).flatMap(({ id, schema }) => {
    const value = exampleOf(schema)
    return value === undefined ? [] : [[id.replace(/\.Enqueue$/, ''), { value }] as const]
  })
  return examples.length === 0 ? {} : { examples: Object.fromEntries(examples) }
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

function responseOf(catalogue: Catalogue, response: RouteResponse, outputs: z.core.$ZodRegistry<{ id: string }>): Json {
  const schemas = response.schema instanceof z.ZodUnion ? response.schema.options : [response.schema]
  const shapes = schemas.flatMap((schema) => shapesOf(schema as z.ZodType))
  return {
    description: response.description,
    headers: headerNotes([...locationOf(response), ...(response.headers ?? []), REQUEST_ID]),
    content: {
      [response.contentType ?? 'application/json']: { schema: shapes.length === 1 ? shapes[0] : { anyOf: shapes } },
    },
  }

  /**
   * Returns the alternatives of a schema. A stored task may be missing from the current catalogue, so the general shape is one of
   * them.
   */
  function shapesOf(schema: z.ZodType): readonly Json[] {
    const id = outputs.get(schema)?.id
    if (id === undefined) return [inline(schema, 'output')]
    const ofTasks = id === 'Task' ? catalogue.definitions.map(({ name }) => reference(`${name}.Task`)) : []
    return [...ofTasks, reference(id)]
  }
}

function parametersIn(place: 'path' | 'query', schema: z.ZodObject | undefined): readonly Json[] {
  if (schema === undefined) return []
  const { properties = {} } = inline(schema, 'output') as { readonly properties?: Readonly<Record<string, Json>> }
  return Object.entries(properties).map(([name, { description, ...rest }]) => ({
    in: place,
    name,
    // A parameter that has a default is always present once parsed, but the caller may omit it.
    required: place === 'path' || !schema.shape[name]?.safeParse(undefined).success,
    ...(description === undefined ? {} : { description }),
    schema: rest,
  }))
}

function problems(codes: readonly ErrorCode[]): Json {
  const byStatus = Map.groupBy(codes, (code) => ERRORS[code].status)
  return {
    ...Object.fromEntries(
      [...byStatus].map(([status, ofStatus]) => [
        String(status),
        {
          description: ofStatus.map((code) => `\`${code}\``).join(', '),
          headers: headerNotes([
            ...(PROBLEM_HEADERS[status] ?? []),
            ...(ofStatus.includes('queue_full') ? RATE_LIMIT : []),
            REQUEST_ID,
          ]),
          content: problemContent(ofStatus),
        },
      ]),
    ),
    default: { description: 'Any other problem.', content: problemContent(['internal_error']) },
  }
}

const REQUEST_ID: HeaderNote = {
  name: 'X-Request-Id',
  description: "The request's id, which also appears in the logs.",
}

const RETRY_AFTER: HeaderNote = {
  name: 'Retry-After',
  description: 'How many seconds to wait before sending the request again.',
}

const RATE_LIMIT: readonly HeaderNote[] = [
  {
    name: 'RateLimit-Policy',
    description:
      'The limit of a full queue or an API key, such as `"queue-tasks";q=1000` or `"enqueue-rate";q=100;w=1`.',
  },
  { name: 'RateLimit', description: 'How much of the limit is left, such as `"queue-tasks";r=0;t=1`.' },
]

const PROBLEM_HEADERS: Readonly<Record<number, readonly HeaderNote[]>> = {
  401: [{ name: 'WWW-Authenticate', description: '`Bearer`.' }],
  429: [RETRY_AFTER],
  503: [RETRY_AFTER],
}

function locationOf({ location }: RouteResponse): readonly HeaderNote[] {
  return location === undefined ? [] : [{ name: 'Location', description: location }]
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
