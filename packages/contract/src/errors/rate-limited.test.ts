// Tests what a handler throws to have its queue held.
import { expect, it } from 'vitest'
import { RateLimited, rateLimited } from './rate-limited.ts'

it('takes a duration, and nothing else', () => {
  const thrown = rateLimited('30s')
  expect(thrown).toBeInstanceOf(RateLimited)
  expect(thrown).toMatchObject({ delayMs: 30_000, message: 'the handler asked that its queue be held for 30s' })
  for (const wrong of ['soon', '0s', 30_000, undefined]) {
    expect(() => rateLimited(wrong as never)).toThrow(expect.objectContaining({ code: 'invalid_duration' }))
  }
})
