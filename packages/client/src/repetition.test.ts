// Tests how long a client waits before it repeats a call.
import { expect, test } from 'vitest'
import { waitBeforeRetry } from './repetition.ts'

test.each([
  ['the delay', { delayMs: 100, requestedMs: undefined, leftMs: 500 }, 100],
  ['the time that the API requests', { delayMs: 100, requestedMs: 300, leftMs: 500 }, 300],
  ['the rest of the time if the delay is longer', { delayMs: 800, requestedMs: 300, leftMs: 500 }, 500],
  ['the rest of the time if the API requests exactly this', { delayMs: 100, requestedMs: 500, leftMs: 500 }, 500],
  ['until the time is over, but not less', { delayMs: 100, requestedMs: 0, leftMs: 12.3 }, 13],
])('a client waits %s', (_, given, wait) => {
  expect(waitBeforeRetry(given)).toBe(wait)
})

test.each([
  ['no time is left', { delayMs: 100, requestedMs: undefined, leftMs: 0 }],
  ['the API requests a longer wait than the rest of the time', { delayMs: 100, requestedMs: 501, leftMs: 500 }],
])('a client does not repeat a call if %s', (_, given) => {
  expect(waitBeforeRetry(given)).toBeUndefined()
})
