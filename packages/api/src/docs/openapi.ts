// Generates the OpenAPI 3.1 document from the route table and the catalogue's contracts.
//
// The document is built here rather than by @fastify/swagger with fastify-type-provider-zod, because their route transform cannot
// express everything that clients rely on. It drops response headers and the examples of problems, describes query parameters as
// strings instead of by their parsed type, does not add a discriminator to the body of an enqueue, leaves dangling references to
// recursive schemas, and creates a second component for every schema that is used both as input and as output.
// @fastify/swagger only serves the finished document.
import type { Catalogue } from '@bullpen/contract'
import { attemptViewSchema, problemSchema } from '@bullpen/contract/internal'
import { z } from 'zod'
import type { Route } from '../http/routes/route.ts'
import { bodyOptions, components, type Json, reference } from './component-schemas.ts'
import { operation } from './operation.ts'

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
    for (const { schema } of Object.values(row.responses)) {
      nameItself(outputs, schema)
      if (schema instanceof z.ZodUnion) for (const option of schema.options) nameItself(outputs, option as z.ZodType)
    }
  }
  const schemas = { ...components(inputs, 'input'), ...components(outputs, 'output'), ...tasks(catalogue) }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Bullpen',
      version,
      description:
        'Enqueue tasks, look them up, wait for them, cancel them, and control the fleet that runs them. Every error is returned as problem details (RFC 9457) with a `code`.',
    },
    security: [{ bearer: [] }],
    paths: paths(catalogue, routes, outputs),
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key. "Try it out" needs it once more, because a session only permits reading.',
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'bullpen_session',
          description: 'A session cookie that /board/login sets for browsers. It permits only reading.',
        },
      },
      schemas,
    },
  }
}

/** Describes each task's shape, which is the general shape of a task with this task's own input and output. */
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

/**
 * Registers a schema under the name that the contract gives it. Only responses, and bodies that do not depend on the catalogue,
 * have named schemas.
 */
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
