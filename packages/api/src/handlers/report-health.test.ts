// Tests what the probes say.
import { expect, test } from 'vitest'
import { problemIn, testApi } from '../api.fixture.ts'

test('an API whose Redis answers is ready, and needs no key to say so', async () => {
  const { app } = await testApi()
  expect((await app.inject('/readyz')).json()).toEqual({ status: 'ready' })
  expect((await app.inject('/livez')).json()).toEqual({ status: 'alive' })
})

test('without Redis it is alive and not ready, and ready again when Redis is back', async () => {
  const { app, broker } = await testApi()
  broker.trouble = 'down'
  expect(problemIn(await app.inject('/readyz'))).toMatchObject({ status: 503, code: 'redis_unavailable' })
  expect((await app.inject('/livez')).statusCode).toBe(200)
  broker.trouble = 'none'
  expect((await app.inject('/readyz')).statusCode).toBe(200)
})

test('a Redis that does not answer is not waited for longer than half a second', async () => {
  const { app, broker } = await testApi()
  broker.trouble = 'hangs'
  const began = performance.now()
  expect(problemIn(await app.inject('/readyz')).code).toBe('redis_unavailable')
  expect(performance.now() - began).toBeLessThan(900)
})

test('an API that shuts down is not ready', async () => {
  const { app, closing } = await testApi()
  closing.abort()
  expect(problemIn(await app.inject('/readyz'))).toMatchObject({ status: 503, code: 'shutting_down' })
})
