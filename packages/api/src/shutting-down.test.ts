// What a producer meets while the API shuts down: an answer, and never a crash.
import { describe, expect, test } from 'vitest'
import { problemIn, testApi } from './api.fixture.ts'

describe('goapp 5: a task that is posted while the API shuts down', () => {
  test('is stored and answered, since the queue outlives the process; the readiness probe sends the next ones elsewhere', async () => {
    const { app, post, broker, closing } = await testApi()
    closing.abort()
    expect(problemIn(await app.inject('/readyz'))).toMatchObject({ status: 503, code: 'shutting_down' })
    const answer = await post({ task: 'math.square', input: { n: 4 } })
    expect([answer.statusCode, answer.headers.connection]).toEqual([202, 'close'])
    expect(broker.enqueued).toHaveLength(1)
  })

  test('is a problem where it can no longer be stored, and can be sent again', async () => {
    const { post, broker, closing } = await testApi()
    closing.abort()
    broker.trouble = 'down'
    expect(problemIn(await post({ task: 'math.square', input: { n: 4 } }))).toMatchObject({
      status: 503,
      code: 'redis_unavailable',
    })
  })
})
