// Tests liveness and readiness.
import { expect, test } from 'vitest'
import { problemIn, testApi } from '../api.fixture.ts'
import { reportReady } from './report-health.ts'

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

test('the API stays ready for 15 s after Redis has last accepted a write, whatever happens then', async () => {
  const { broker, closing } = await testApi()
  let now = 0
  const ready = reportReady({ broker, closing: closing.signal }, () => now)
  const isReady = () =>
    ready().then(
      () => true,
      () => false,
    )
  for (const trouble of ['down', 'hangs'] as const) {
    broker.trouble = trouble
    expect(await isReady()).toBe(false)
    broker.trouble = 'none'
    expect(await isReady()).toBe(true)
    broker.trouble = trouble
    now += 14_999
    expect(await isReady()).toBe(true)
    now += 1
    expect(await isReady()).toBe(false)
  }
})

test('the API is not ready while it closes', async () => {
  const { app, closing } = await testApi()
  closing.abort()
  expect(problemIn(await app.inject('/readyz'))).toMatchObject({ status: 503, code: 'shutting_down' })
})
