// Tests how the API answers a producer while it closes.
import { describe, expect, test } from 'vitest'
import { problemIn, testApi } from '../api.fixture.ts'

describe('a task enqueued while the API closes', () => {
  test('is stored, because the queue outlives the process, while the readiness probe redirects new requests', async () => {
    const { app, post, broker, closing } = await testApi()
    closing.abort()
    expect(problemIn(await app.inject('/readyz'))).toMatchObject({ status: 503, code: 'shutting_down' })
    const answer = await post({ task: 'math.square', input: { n: 4 } })
    expect(answer.statusCode).toBe(202)
    expect(answer.headers.connection).toBe('close')
    expect(broker.enqueued).toHaveLength(1)
  })

  test('is answered with a retryable problem if it cannot be stored', async () => {
    const { post, broker, closing } = await testApi()
    closing.abort()
    broker.trouble = 'down'
    expect(problemIn(await post({ task: 'math.square', input: { n: 4 } }))).toMatchObject({
      status: 503,
      code: 'redis_unavailable',
    })
  })
})
