// Tests the error that a handler throws to throttle its queue.
import { expect, it } from 'vitest'
import { RateLimited, rateLimited } from './rate-limited.ts'

it('rateLimited accepts a duration and nothing else', () => {
  const thrown = rateLimited('30s')
  expect(thrown).toBeInstanceOf(RateLimited)
  expect(thrown).toMatchObject({ delayMs: 30_000, message: 'rate limited: the queue is throttled for 30s' })
  for (const wrong of ['soon', '0s', 30_000, undefined]) {
    expect(() => rateLimited(wrong as never)).toThrow(expect.objectContaining({ code: 'invalid_duration' }))
  }
})
