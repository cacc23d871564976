// Tests liveness and readiness.
import { expect, test } from 'vitest'
import { problemIn, testApi } from '../api.fixture.ts'

test('the API is ready when Redis answers, and its probes need no key', async () => {
  const { app } = await testApi()
  expect((await app.inject('/readyz')).json()).toEqual({ status: 'ready' })
  expect((await app.inject('/livez')).json()).toEqual({ status: 'alive' })
})

test('the API is alive but not ready while Redis is down, and ready again when Redis is back', async () => {
  const { app, broker } = await testApi()
  broker.trouble = 'down'
  expect(problemIn(await app.inject('/readyz'))).toMatchObject({ status: 503, code: 'redis_unavailable' })
  expect((await app.inject('/livez')).statusCode).toBe(200)
  broker.trouble = 'none'
  expect((await app.inject('/readyz')).statusCode).toBe(200)
})

test('the API is not ready while Redis does not answer', async () => {
  const { app, broker } = await testApi()
  broker.trouble = 'hangs'
  expect(problemIn(await app.inject('/readyz')).code).toBe('redis_unavailable')
})

test('the API is not ready while it closes', async () => {
  const { app, closing } = await testApi()
  closing.abort()
  expect(problemIn(await app.inject('/readyz'))).toMatchObject({ status: 503, code: 'shutting_down' })
})
