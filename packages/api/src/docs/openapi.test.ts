// Tests that the OpenAPI document is complete, is consistent with the routes, and contains every task's contract.
import { defineCatalogue, defineTask, type Problem } from '@bullpen/contract'
import { ERRORS } from '@bullpen/contract/internal'
import fastify from 'fastify'
import { describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'
import { catalogue, testApi } from '../api.fixture.ts'
import { addReference } from './reference.ts'

interface Document {
  readonly openapi: string
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Readonly<Record<string, unknown>>>> }
}
interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly schema: object }[]
  readonly operationId: string
  readonly requestBody?: object
  readonly responses: Readonly<Record<string, unknown>>
}

interface RequestBody {
  readonly content: { readonly 'application/json': { readonly examples: Readonly<Record<string, { value: unknown }>> } }
}

async function document(): Promise<Document> {
  const { get } = await testApi()
  return (await get('/openapi.json')).json<Document>()
}

describe('the document', () => {
  test('contains every route', async () => {
    const { openapi, paths } = await document()
    expect(openapi).toBe('3.1.0')
    const operations = Object.values(paths).flatMap((methods) => Object.values(methods))
    expect(operations.map(({ operationId }) => operationId)).toEqual([
      'enqueueTask',
      'listTasks',
      'enqueueBulk',
      'showTask',
      'deleteTask',
      'cancelTask',
      'cancelTasks',
      'showCancel',
      'streamTaskEvents',
      'streamQueueEvents',
      'streamGroupEvents',
      'streamEvents',
      'retryTask',
      'searchDeadTasks',
      'countFingerprints',
      'retryDeadTasks',
      'deleteDeadTasks',
      'listDeadTaskRequests',
      'showDeadTaskRequest',
      'stopDeadTaskRequest',
      'createGroup',
      'listGroups',
      'showGroup',
      'addToGroup',
      'sealGroup',
      'cancelGroup',
      'showGroupResults',
      'startRun',
      'listRuns',
      'showRun',
      'deleteRun',
      'cancelRun',
      'showRunErrors',
      'listSchedules',
      'storeSchedule',
      'syncSchedules',
      'showSchedule',
      'deleteSchedule',
      'pauseSchedule',
      'resumeSchedule',
      'runSchedule',
      'showFleet',
      'listQueues',
      'showLimits',
      'listPools',
      'listSlots',
      'sendCommand',
      'listCommands',
      'showCommand',
      'diagnose',
      'findOrphans',
      'deleteOrphans',
      'livez',
      'readyz',
    ])
  })

  test('contains the input and output of each task by name', async () => {
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

  test('describes the body of a cancel by filter', async () => {
    const { paths, components } = await document()
    expect(paths['/v1/tasks/cancel']?.['post']).toMatchObject({
      requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/CancelFilter' } } } },
    })
    expect(components.schemas['CancelFilter']).toMatchObject({ required: ['queue'], additionalProperties: false })
  })

  test('contains the limits of a number only if the contract has some', async () => {
    const { components } = await document()
    expect(components.schemas['math.square.Input']).toEqual({
      type: 'object',
      properties: { n: { type: 'integer' } },
      required: ['n'],
      additionalProperties: false,
    })
  })

  test('describes a wait as a number of seconds or a duration', async () => {
    const { paths } = await document()
    const parameters = paths['/v1/tasks']?.['post']?.parameters ?? []
    expect(parameters.find(({ name }) => name === 'wait')?.schema).toMatchObject({
      anyOf: [
        { type: 'number', minimum: 0, maximum: 30 },
        { type: 'string', pattern: expect.stringContaining('ms|s') },
      ],
    })
  })

  test('describes the body of a command as one of its kinds', async () => {
    const { paths, components } = await document()
    const body = paths['/v1/commands']?.['post']?.requestBody
    expect(body).toMatchObject({
      content: { 'application/json': { schema: { $ref: '#/components/schemas/CommandRequest' } } },
    })
    expect(components.schemas['CommandRequest']?.['oneOf']).toHaveLength(8)
  })

  test('closes request bodies and leaves responses open, so that responses can gain fields', async () => {
    const { components } = await document()
    expect(components.schemas['math.square.Enqueue']).toMatchObject({ additionalProperties: false })
    for (const name of ['Task', 'Attempt', 'Accepted', 'Fleet', 'Problem', 'math.square.Output']) {
      expect(components.schemas).toHaveProperty([name])
      expect(components.schemas[name]).not.toHaveProperty('additionalProperties')
    }
  })

  test('discriminates the bodies of an enqueue by the name of the task', async () => {
    const { paths } = await document()
    expect(paths['/v1/tasks']?.['post']?.requestBody).toMatchObject({
      content: {
        'application/json': {
          schema: {
            oneOf: [
              { $ref: '#/components/schemas/math.square.Enqueue' },
              { $ref: '#/components/schemas/email.welcome.Enqueue' },
            ],
            discriminator: {
              propertyName: 'task',
              mapping: { 'math.square': '#/components/schemas/math.square.Enqueue' },
            },
          },
        },
      },
    })
  })

  test('describes the tasks of a bulk request as the bodies of an enqueue, and has an example that the API accepts', async () => {
    const { paths, components } = await document()
    const body = paths['/v1/tasks/bulk']?.['post']?.requestBody as RequestBody
    expect(body).toMatchObject({
      content: { 'application/json': { schema: { $ref: '#/components/schemas/EnqueueBulk' } } },
    })
    expect(components.schemas['EnqueueBulk']).toMatchObject({
      properties: { tasks: { minItems: 1, maxItems: 1_000 } },
      additionalProperties: false,
    })
    expect(JSON.stringify(components.schemas['EnqueueBulk'])).toContain('"#/components/schemas/email.welcome.Enqueue"')
    const { ask } = await testApi()
    const [example] = Object.values(body.content['application/json'].examples)
    const response = await ask({
      method: 'POST',
      url: '/v1/tasks/bulk',
      headers: { 'content-type': 'application/json' },
      payload: JSON.stringify(example?.value),
    })
    expect(response.json()).toMatchObject({ failed: 0, results: [{ action: 'created' }] })
  })

  test('has an example of the body for every task, which the API accepts', async () => {
    const { post } = await testApi()
    const { paths } = await document()
    const body = paths['/v1/tasks']?.['post']?.requestBody as RequestBody
    const { examples } = body.content['application/json']
    expect(examples).toEqual({
      'math.square': { value: { task: 'math.square', input: { n: 1 } } },
      'email.welcome': { value: { task: 'email.welcome', input: { to: 'ann@example.com' } } },
    })
    for (const { value } of Object.values(examples)) expect((await post(value)).statusCode).toBe(202)
  })

  test('describes the headers of responses and problems', async () => {
    const { paths } = await document()
    const responses = paths['/v1/tasks']?.['post']?.responses ?? {}
    expect(responses['202']).toHaveProperty(['headers', 'Location'])
    expect(responses['202']).toHaveProperty(['headers', 'X-Request-Id'])
    expect(responses['503']).toHaveProperty(['headers', 'Retry-After'])
    expect(responses['401']).toHaveProperty(['headers', 'WWW-Authenticate'])
  })

  test('has a component with a valid name for every reference', async () => {
    const whole = await document()
    const known = Object.keys(whole.components.schemas)
    for (const name of known) expect(name).toMatch(/^[A-Za-z0-9._-]+$/)
    expect(dangling(whole)).toEqual([])
  })

  test('lists the problems of each route by status', async () => {
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
      expect(JSON.stringify(operation?.responses[String(ERRORS[code].status)])).toContain(`\`${code}\``)
    }
  })

  test('accepts schemas that are shared, named, recursive, or not expressible in JSON Schema', async () => {
    const Node = z.object({
      name: z.string(),
      get children() {
        return z.array(Node)
      },
    })
    const shared = z.object({ id: z.string().meta({ id: 'Sku' }) })
    const define = (name: 'a.one' | 'a.two', input: z.ZodType) =>
      defineTask({ name, queue: 'q', input, output: shared })
    const odd = z.object({
      node: Node,
      big: z.coerce.bigint().optional(),
      at: z.coerce.date().optional(),
      both: shared,
    })
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
  test.each([
    ['json', (text: string): unknown => JSON.parse(text)],
    ['yaml', (text: string): unknown => parse(text)],
  ])('serves the same document as %s', async (format, read) => {
    const { get } = await testApi()
    const served = read((await get(`/reference/${format}`)).body)
    expect(served).toEqual((await get('/openapi.json')).json())
  })

  test('makes the document when it is first requested, and only once', async () => {
    const build = vi.fn(() => ({ openapi: '3.1.0' }))
    await using app = fastify()
    await addReference(app, build)
    await app.ready()
    expect(build).not.toHaveBeenCalled()
    for (const url of ['/openapi.json', '/reference/json', '/openapi.json']) {
      expect((await app.inject(url)).json()).toEqual({ openapi: '3.1.0' })
    }
    expect(build).toHaveBeenCalledTimes(1)
  })

  test('loads nothing from other origins', async () => {
    const { get } = await testApi()
    const page = await get('/reference')
    expect(page.statusCode).toBe(200)
    expect(page.body).not.toMatch(/https?:\/\//)
    expect(page.headers['content-security-policy']).toContain("script-src 'self';")
    expect(page.headers['x-frame-options']).toBe('DENY')
    expect((await get('/reference/static/swagger-ui-bundle.js')).statusCode).toBe(200)
  })
})

test('the type of a problem leads to a page that names it', async () => {
  const { app, get } = await testApi()
  const { type, title } = (await get('/v1/tasks/7')).json<Problem>()
  const page = await app.inject(type)
  expect(page.statusCode).toBe(200)
  expect(page.body).toContain(title)
  expect(page.body).toContain('task_not_found')
})
