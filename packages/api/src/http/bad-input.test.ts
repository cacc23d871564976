// Tests that every malformed request is answered with a problem that has a code.
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anId, KEY, problemIn, testApi } from '../api.fixture.ts'

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

describe('a body', () => {
  test.each([
    ['empty', '', 400, 'malformed_json'],
    ['not JSON', '{"task":', 400, 'malformed_json'],
    ['JSON with a comma too many', '{"task":"math.square",}', 400, 'malformed_json'],
    ['not UTF-8', Buffer.from([0x22, 0xff, 0xfe, 0x22]), 400, 'malformed_json'],
    ['null', 'null', 400, 'invalid_request'],
    ['an array', '[]', 400, 'invalid_request'],
    ['a number', '7', 400, 'invalid_request'],
    ['with a __proto__ key', '{"task":"math.square","input":{"n":1,"__proto__":{"x":1}}}', 400, 'invalid_request'],
    ['with an escaped __proto__ key', '{"\\u005f_proto__":{"x":1}}', 400, 'invalid_request'],
    ['with a constructor.prototype key', '{"constructor":{"prototype":{}}}', 400, 'invalid_request'],
    ['with an infinite number', '{"task":"email.welcome","input":{"extra":1e999}}', 400, 'invalid_request'],
    ['nested 30,000 deep', nested(30_000), 400, 'invalid_request'],
    ['with a task nested 30,000 deep', `{"task":"math.square","input":${nested(30_000)}}`, 400, 'invalid_request'],
    [
      'with free input nested 101 deep',
      `{"task":"email.welcome","input":{"to":"a@b.co","tree":${nested(101)}}}`,
      400,
      'invalid_request',
    ],
  ])('that is %s is rejected', async (_name, body, status, code) => {
    const { post, broker } = await testApi()
    expect(problemIn(await post(body))).toMatchObject({ status, code })
    expect(broker.enqueued).toEqual([])
  })

  test.each([
    ['{"task":"math.square","input":{"n":4},"meta":{"__proto__":"a"}}', '/meta/__proto__'],
    ['{"task":"math.square","input":{"n":[1,{"constructor":{"prototype":1}}]}}', '/input/n/1/constructor/prototype'],
  ])('%s is rejected with the place of the harmful key', async (body, pointer) => {
    const { post } = await testApi()
    const { detail, errors } = problemIn(await post(body))
    expect(errors).toMatchObject([{ pointer }])
    expect(detail).toContain(`${pointer}: `)
  })

  test('may be as large as the limit but no larger', async () => {
    const { post } = await testApi()
    const withText = (length: number) =>
      JSON.stringify({ task: 'email.welcome', input: { to: 'a@example.com', extra: 'x'.repeat(length) } })
    const rest = withText(0).length
    expect((await post(withText(262_144 - rest))).statusCode).toBe(202)
    const problem = problemIn(await post(withText(262_145 - rest)))
    expect(problem).toMatchObject({ status: 413, code: 'payload_too_large' })
    expect(problem.detail).toBe('the body is larger than the limit of 262144 bytes')
  })

  test.each([
    ['text', { 'content-type': 'text/plain' }],
    ['a form', { 'content-type': 'application/x-www-form-urlencoded' }],
    ['nonsense', { 'content-type': 'nonsense' }],
    ['compressed', { 'content-encoding': 'gzip' }],
  ])('that is %s is rejected', async (_name, headers) => {
    const { post } = await testApi()
    expect(problemIn(await post('{"task":"math.square","input":{"n":4}}', headers))).toMatchObject({
      status: 415,
      code: 'unsupported_media_type',
    })
  })

  test('that is missing is rejected', async () => {
    const { ask } = await testApi()
    const answer = await ask({ method: 'POST', url: '/v1/tasks' })
    expect(problemIn(answer)).toMatchObject({ status: 400, code: 'invalid_request' })
  })

  test('of any JSON is never answered with a server error', async () => {
    const { post } = await testApi()
    const task = fc.oneof(fc.constantFrom('math.square', 'email.welcome'), fc.string())
    const body = fc.oneof(
      fc.json(),
      fc.record({ task, input: fc.jsonValue() }).map((value) => JSON.stringify(value)),
      fc
        .record(
          { task, input: fc.jsonValue(), meta: fc.jsonValue(), delay: fc.jsonValue(), timeout: fc.jsonValue() },
          { requiredKeys: [] },
        )
        .map((value) => JSON.stringify(value)),
      fc.string(),
    )
    await fc.assert(
      fc.asyncProperty(body, async (text) => {
        const answer = await post(text)
        expect(answer.statusCode).toBeLessThan(500)
        if (answer.statusCode !== 202) problemIn(answer)
      }),
      { numRuns: 500 },
    )
  })
})

describe('a request', () => {
  test('to an unknown path is answered with its method and path', async () => {
    const { get } = await testApi()
    expect(problemIn(await get('/v1/nope?key=secret'))).toMatchObject({
      status: 404,
      code: 'route_not_found',
      detail: 'route GET /v1/nope not found; /openapi.json lists all routes',
    })
    expect(problemIn(await get('/v1/v1/tasks')).detail).toContain("the API's URL must not end in /v1")
  })

  test.each([
    ['DELETE', '/v1/tasks', 'POST, GET, HEAD, OPTIONS'],
    ['PUT', '/v1/tasks/cpu-0', 'GET, HEAD, DELETE, OPTIONS'],
    ['POST', '/livez', 'GET, HEAD, OPTIONS'],
  ] as const)('%s %s is answered with the allowed methods', async (method, url, allow) => {
    const { ask } = await testApi()
    const answer = await ask({ method, url })
    expect(problemIn(answer)).toMatchObject({ status: 405, code: 'method_not_allowed' })
    expect(answer.headers.allow).toBe(allow)
  })

  test.each(['/v1/tasks/%', '/v1/tasks/%zz'])('to the malformed path %s is rejected', async (url) => {
    const { get } = await testApi()
    expect(problemIn(await get(url))).toMatchObject({ status: 400, code: 'invalid_request' })
  })

  test.each(['GET', 'POST'] as const)('%s with an id that is too long is not found', async (method) => {
    const { ask } = await testApi()
    const answer = await ask({ method, url: `/v1/tasks/${'x'.repeat(129)}` })
    expect(problemIn(answer)).toMatchObject({ status: 404, code: 'route_not_found' })
  })

  test('without a Host header is rejected with a problem that names the header', async () => {
    const { app } = await testApi()
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
    const socket = connect(Number(port), '127.0.0.1')
    socket.write(`GET /livez HTTP/1.1\r\nConnection: close\r\n\r\n`)
    const response = await text(socket)
    expect(response).toMatch(/^HTTP\/1\.1 400 /)
    const problem = JSON.parse(response.slice(response.indexOf('\r\n\r\n')))
    expect(problem).toMatchObject({ code: 'invalid_request', errors: [{ header: 'Host' }] })
  })

  test('with any path and query is never answered with a server error', async () => {
    const { get } = await testApi()
    const part = fc.string({ unit: 'binary' }).map((text) => encodeURIComponent(text.toWellFormed()))
    const url = fc
      .tuple(fc.constantFrom('/v1/tasks', '/v1/tasks/', '/board/login', '/'), part, part, part)
      .map(([path, id, name, value]) => `${path}${id}?${name}=${value}&queue=${value}&status=waiting&wait=${value}`)
    await fc.assert(
      fc.asyncProperty(url, async (text) => {
        expect((await get(text)).statusCode).toBeLessThan(500)
      }),
      { numRuns: 300 },
    )
  })
})

describe('a request with a wrong body', () => {
  test.each([
    ['text/plain', "the Content-Type is 'text/plain'; expected a body with Content-Type: application/json"],
    ['', 'expected a body with Content-Type: application/json'],
  ])('of the Content-Type %j is answered with the one that is accepted', async (type, detail) => {
    const { post, broker } = await testApi()
    const answer = await post('{"task":"math.square","input":{"n":4}}', { 'content-type': type })
    expect(problemIn(answer)).toMatchObject({ status: 415, code: 'unsupported_media_type', detail })
    expect(broker.enqueued).toEqual([])
  })

  test('without a Content-Type is answered with the one that is accepted', async () => {
    const { app } = await testApi()
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const body = new TextEncoder().encode('{}')
    const response = await fetch(`${url}/v1/tasks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${KEY}` },
      body,
    })
    expect(await response.json()).toMatchObject({
      code: 'unsupported_media_type',
      detail: 'the request has a body without a Content-Type; expected a body with Content-Type: application/json',
    })
  })

  test('that is not JSON is answered with the reason', async () => {
    const { post } = await testApi()
    expect(problemIn(await post('nonsense')).detail).toBe(
      'the body is not valid JSON: Unexpected token \'o\', "nonsense"',
    )
  })

  test.each(['DELETE', 'POST'] as const)('%s without a body may have the Content-Type of JSON', async (method) => {
    const { ask } = await testApi()
    const url = `/v1/tasks/${anId}${method === 'POST' ? '/cancel' : ''}`
    const answer = await ask({ method, url, headers: { 'content-type': 'application/json' } })
    expect(problemIn(answer)).toMatchObject({ status: 404, code: 'task_not_found' })
  })
})

describe('an unknown parameter', () => {
  const unknown = { parameter: 'foo', message: expect.stringMatching(/^unknown parameter; /) }

  test('is rejected by every route that a caller may use without a body', async () => {
    const { ask, get } = await testApi()
    const { paths } = (await get('/openapi.json')).json<{
      paths: Record<string, Record<string, { requestBody?: { required: boolean } }>>
    }>()
    const routes = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { requestBody }]) =>
        path.startsWith('/v1/') && requestBody?.required !== true ? [[method.toUpperCase(), path] as const] : [],
      ),
    )
    expect(routes.length).toBeGreaterThan(20)
    for (const [method, path] of routes) {
      const url = `${path.replaceAll(/\{\w+\}/g, 'x')}?foo=1`
      const problem = problemIn(await ask({ method: method as 'GET', url }))
      expect(problem.errors, `${method} ${path}`).toContainEqual(unknown)
    }
  })

  test.each([
    ['/v1/tasks/bulk', { tasks: [{ task: 'math.square', input: { n: 4 } }] }],
    ['/v1/schedules', { name: 'nightly', task: 'math.square', input: { n: 4 }, every: '1h' }],
    ['/v1/groups', {}],
  ])('is rejected by POST %s', async (path, payload) => {
    const { ask, broker } = await testApi()
    const problem = problemIn(await ask({ method: 'POST', url: `${path}?foo=1`, payload }))
    expect(problem).toMatchObject({
      code: 'invalid_request',
      errors: [{ ...unknown, message: 'unknown parameter; expected none' }],
    })
    expect(broker.enqueued).toEqual([])
  })

  test('of a probe is ignored, because load balancers may add their own', async () => {
    const { get } = await testApi()
    expect((await get('/livez?foo=1')).statusCode).toBe(200)
  })
})

test('a parameter that is given twice is rejected', async () => {
  const { get } = await testApi()
  const problem = problemIn(await get('/v1/tasks?queue=cpu&queue=mail&status=dead'))
  expect(problem.errors).toEqual([{ parameter: 'queue', message: 'given 2 times; expected it once' }])
})

describe('an unexpected error', () => {
  test('is logged with its stack, and not shown to the caller', async () => {
    const { post, broker, lines } = await testApi()
    broker.trouble = 'breaks'
    const answer = await post({ task: 'math.square', input: { n: 4 } })
    expect(problemIn(answer)).toMatchObject({ status: 500, code: 'internal_error' })
    expect(answer.body).not.toContain('hunter2')
    const line = lines.find(({ level }) => level === 'error')
    expect(line?.fields).toMatchObject({ err: { stack: expect.stringContaining('hunter2') } })
  })
})

describe('the access log', () => {
  test('contains routes but not queries, which may contain keys', async () => {
    const { get, lines, observed } = await testApi()
    await get(`/board/login?key=${KEY}`)
    await get('/v1/tasks?queue=cpu&status=waiting&secret=1')
    await get('/nowhere?secret=1')
    expect(JSON.stringify([lines, observed])).not.toMatch(new RegExp(`${KEY}|secret`))
    expect(observed).toEqual([
      { method: 'GET', route: '/board/login', status: 401, seconds: expect.any(Number) },
      { method: 'GET', route: '/v1/tasks', status: 400, seconds: expect.any(Number) },
      { method: 'GET', route: 'none', status: 404, seconds: expect.any(Number) },
    ])
  })

  test('counts bytes that are not HTTP without a method and a route', async () => {
    const { app, observed } = await testApi()
    const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
    const socket = connect(Number(port), '127.0.0.1')
    socket.write('GET /v1/tasks?queue=a b HTTP/1.1\r\n\r\n')
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /)
    expect(observed).toEqual([{ method: 'none', route: 'none', status: 400 }])
  })

  test.each(['/v1/tasks/%zz', `/v1/tasks/${'x'.repeat(129)}`])(
    'counts a request whose path is not readable, such as %s, like one without a route',
    async (url) => {
      const { get, lines, observed } = await testApi()
      const { statusCode: status } = await get(url)
      expect(observed).toEqual([{ method: 'GET', route: 'none', status, seconds: expect.any(Number) }])
      expect(lines).toMatchObject([{ message: 'request completed', fields: { route: 'none', status } }])
    },
  )
})
