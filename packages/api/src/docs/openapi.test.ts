// Tests the OpenAPI document: whole, true to the routes, and holding every task's contract.
import { defineCatalogue, defineTask, type Problem } from '@bullpen/contract'
import { HTTP_STATUS } from '@bullpen/contract/internal'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { catalogue, testApi } from '../api.fixture.ts'

interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Readonly<Record<string, unknown>>>> }
}
interface Operation {
  readonly operationId: string
  readonly requestBody?: object
  readonly responses: Readonly<Record<string, unknown>>
}

async function document(): Promise<Document> {
  const { get } = await testApi()
  return (await get('/openapi.json')).json<Document>()
}

describe('the document', () => {
  test('names every route', async () => {
    const { openapi, paths } = await document()
    expect(openapi).toBe('3.1.0')
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
    expect(operations.map(({ operationId }) => operationId)).toEqual([
      'enqueueTask',
      'listTasks',
      'showTask',
      'cancelTask',
      'cancelTasks',
      'showCancel',
      'showFleet',
      'listPools',
      'listWorkers',
      'sendCommand',
      'listCommands',
      'showCommand',
      'logIn',
      'livez',
      'readyz',
    ])
  })

  test("holds each task's input and output by name, as the contract says them", async () => {
    const { components } = await document()
    for (const { name, input, output } of catalogue.definitions) {
      const { $schema: _, ...inputSchema } = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
      expect(components.schemas[`${name}.Input`]).toMatchObject({ type: 'object', required: inputSchema.required })
      expect(Object.keys(Object(components.schemas[`${name}.Input`]?.['properties']))).toEqual(
        Object.keys(inputSchema.properties ?? {}),
      )
      expect(components.schemas[`${name}.Output`]?.['required']).toEqual(z.toJSONSchema(output).required)
      expect(JSON.stringify(components.schemas[`${name}.Enqueue`])).toContain(`"#/components/schemas/${name}.Input"`)
      expect(JSON.stringify(components.schemas[`${name}.Task`])).toContain(`"#/components/schemas/${name}.Output"`)
    }
  })

  test('says what a cancel by filter takes', async () => {
    const { paths, components } = await document()
    expect(paths['/v1/tasks/cancel']?.['post']).toMatchObject({
      requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/CancelFilter' } } } },
    })
    expect(components.schemas['CancelFilter']).toMatchObject({ required: ['queue'], additionalProperties: false })
  })

  test("says a number's limits where the contract has some", async () => {
    const { components } = await document()
    expect(components.schemas['math.square.Input']).toEqual({
      type: 'object',
      properties: { n: { type: 'integer' } },
      required: ['n'],
      additionalProperties: false,
    })
  })

  test('holds the body of a command as one of its kinds', async () => {
    const { paths, components } = await document()
    const body = paths['/v1/commands']?.['post']?.requestBody
    expect(body).toMatchObject({
      content: { 'application/json': { schema: { $ref: '#/components/schemas/CommandRequest' } } },
    })
    expect(components.schemas['CommandRequest']?.['oneOf']).toHaveLength(6)
  })

  test('has a component for every reference, with a name that OpenAPI allows', async () => {
    const whole = await document()
    const known = Object.keys(whole.components.schemas)
    for (const name of known) expect(name).toMatch(/^[A-Za-z0-9._-]+$/)
    expect(dangling(whole)).toEqual([])
  })

  test('lists, for each route, the statuses of the problems that it answers', async () => {
    const { get, post } = await testApi()
    const { paths } = await document()
    const answers = [
      { operation: paths['/v1/tasks']?.['post'], answer: await post('{') },
      { operation: paths['/v1/tasks']?.['post'], answer: await post({ task: 'no.task' }) },
      { operation: paths['/v1/tasks/{id}']?.['get'], answer: await get('/v1/tasks/7') },
      { operation: paths['/v1/tasks']?.['get'], answer: await get('/v1/tasks?queue=x&status=dead') },
    ]
    for (const { operation, answer } of answers) {
      const { code } = answer.json<Problem>()
      expect(JSON.stringify(operation?.responses[String(HTTP_STATUS[code])])).toContain(`\`${code}\``)
    }
  })

  test('copes with schemas that are shared, named, recursive, or unknown to JSON Schema', async () => {
    const Node = z.object({
      name: z.string(),
      get children() {
        return z.array(Node)
      },
    })
    const shared = z.object({ id: z.string().meta({ id: 'Sku' }) })
    const define = (name: 'a.one' | 'a.two', input: z.ZodType) =>
      defineTask({ name, queue: 'q', input, output: shared })
    const odd = z.object({ node: Node, big: z.bigint().optional(), at: z.date().optional(), both: shared })
    const { get } = await testApi({ catalogue: defineCatalogue(define('a.one', odd), define('a.two', shared)) })
    const made = (await get('/openapi.json')).json<Document>()
    expect(made.components.schemas).toHaveProperty(['a.one.Input', 'properties', 'both'])
    expect(made.components.schemas['a.two.Output']).toMatchObject({ properties: { id: { type: 'string' } } })
    expect(dangling(made)).toEqual([])
  })
})

function dangling(made: Document): readonly string[] {
  const targets = [...JSON.stringify(made).matchAll(/"\$ref":"([^"]+)"/g)].map(([, target = '']) => target)
  expect(targets.length).toBeGreaterThan(10)
  return targets.filter((target) => !(target.replace('#/components/schemas/', '') in made.components.schemas))
}

describe('the reference page', () => {
  test('is served from here, with a policy that lets nothing else in', async () => {
    const { get } = await testApi()
    const page = await get('/reference')
    expect(page.statusCode).toBe(200)
    expect(page.body).not.toMatch(/https?:\/\//)
    expect(page.headers['content-security-policy']).toContain("script-src 'self';")
    expect(page.headers['x-frame-options']).toBe('DENY')
    expect((await get('/reference/static/swagger-ui-bundle.js')).statusCode).toBe(200)
  })
})
