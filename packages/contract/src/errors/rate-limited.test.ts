// Tests the error that a handler throws to throttle its queue or its concurrency key.
import { expect, it } from 'vitest'
import { RateLimited, rateLimited } from './rate-limited.ts'

it('rateLimited accepts a duration and nothing else', () => {
  const thrown = rateLimited('30s')
  expect(thrown).toBeInstanceOf(RateLimited)
  expect(thrown).toMatchObject({ delayMs: 30_000, of: 'queue' })
  expect(thrown.message).toBe('rate limited: the queue is throttled for 30s')
  for (const wrong of ['soon', '0s', 30_000, undefined]) {
    expect(() => rateLimited(wrong as never)).toThrow(expect.objectContaining({ code: 'invalid_duration' }))
  }
})

it('rateLimited throttles the queue or the concurrency key, and rejects anything else', () => {
  const thrown = rateLimited('30s', { of: 'concurrencyKey' })
  expect(thrown).toMatchObject({ delayMs: 30_000, of: 'concurrencyKey' })
  expect(thrown.message).toBe('rate limited: the concurrency key is throttled for 30s')
  expect(() => rateLimited('30s', { of: 'key' as never })).toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      message: `the option 'of' of rateLimited is "key"; expected 'queue' or 'concurrencyKey'`,
    }),
  )
})
