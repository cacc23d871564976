// Tests which cross-origin requests browsers may make, and which responses their scripts may read.
import { describe, expect, test } from 'vitest'
import { KEY, testApi } from '../api.fixture.ts'

const SHOP = 'https://shop.example.com'
const PREFLIGHT = {
  method: 'OPTIONS',
  url: '/v1/tasks',
  headers: {
    origin: SHOP,
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization,content-type,idempotency-key',
  },
} as const

const allowOriginOf = ({ headers }: { headers: object }): unknown =>
  (headers as Record<string, unknown>)['access-control-allow-origin']

describe('an origin that may call the API', () => {
  test('learns without a key what its scripts may send', async () => {
    const { app } = await testApi({ corsOrigins: [SHOP] })
    const { statusCode, headers, body } = await app.inject(PREFLIGHT)
    expect({ statusCode, body }).toEqual({ statusCode: 204, body: '' })
    expect(headers).toMatchObject({
      'access-control-allow-origin': SHOP,
      'access-control-allow-methods': 'GET, POST, DELETE',
      'access-control-allow-headers':
        'authorization, content-type, idempotency-key, last-event-id, prefer, traceparent, tracestate, x-request-id',
      'access-control-max-age': '7200',
      vary: 'Origin',
    })
    expect(headers).not.toHaveProperty('access-control-allow-credentials')
  })

  test('may read every response, also if the request was rejected', async () => {
    const { app } = await testApi({ corsOrigins: ['http://localhost:5173', SHOP] })
    const headers = { origin: SHOP, authorization: `Bearer ${KEY}` }
    const payload = { task: 'math.square', input: { n: 4 } }
    const accepted = await app.inject({ method: 'POST', url: '/v1/tasks', headers, payload })
    const rejected = await app.inject({ method: 'POST', url: '/v1/tasks', headers: { origin: SHOP }, payload })
    const unknown = await app.inject({ method: 'GET', url: '/v1/nothing', headers })
    expect([accepted, rejected, unknown].map(({ statusCode }) => statusCode)).toEqual([202, 401, 404])
    for (const response of [accepted, rejected, unknown]) {
      expect(response.headers).toMatchObject({ 'access-control-allow-origin': SHOP, vary: 'Origin' })
      expect(response.headers['access-control-expose-headers']).toContain('retry-after')
    }
  })

  test('may not call the board or the login', async () => {
    const { app } = await testApi({ corsOrigins: [SHOP] })
    const headers = { origin: SHOP }
    expect(allowOriginOf(await app.inject({ method: 'GET', url: '/board/login', headers }))).toBeUndefined()
    expect(allowOriginOf(await app.inject({ ...PREFLIGHT, url: '/board/login' }))).toBeUndefined()
  })
})

describe('another origin', () => {
  test.each(['https://shop.example.com.evil.example', 'http://shop.example.com', 'null'])(
    'such as %s is not allowed',
    async (origin) => {
      const { app } = await testApi({ corsOrigins: [SHOP] })
      const preflight = await app.inject({ ...PREFLIGHT, headers: { ...PREFLIGHT.headers, origin } })
      expect(preflight.statusCode).toBe(401)
      const shown = await app.inject({ method: 'GET', url: '/v1/fleet', headers: { origin } })
      expect([allowOriginOf(preflight), allowOriginOf(shown)]).toEqual([undefined, undefined])
      // A cache must not give this response to a page of an allowed origin.
      expect(shown.headers['vary']).toBe('Origin')
    },
  )

  test('is not allowed unless origins are configured', async () => {
    const { app } = await testApi()
    const preflight = await app.inject(PREFLIGHT)
    expect(preflight.statusCode).toBe(401)
    expect(allowOriginOf(preflight)).toBeUndefined()
  })
})

test('OPTIONS that is not a preflight needs a key like any other request', async () => {
  const { app } = await testApi({ corsOrigins: [SHOP] })
  const response = await app.inject({ method: 'OPTIONS', url: '/v1/tasks', headers: { origin: SHOP } })
  expect(response.statusCode).toBe(401)
})
