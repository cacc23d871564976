// Tests how long a client waits before it repeats a call.

import { ProblemError } from '@bullpen/contract/internal'
import { expect, test } from 'vitest'
import { isSilent, limitOfRepeat, waitBeforeRetry } from './repetition.ts'

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

test.each([
  ['a fifth of the time for repeats', { retryForMs: 60_000, leftMs: 59_000 }, 12_000],
  ['at least 2 s', { retryForMs: 3_000, leftMs: 2_500 }, 2_000],
  ['the time that it may wait in addition', { retryForMs: 10_000, leftMs: 9_000, waitMs: 30_000 }, 32_000],
  ['as long as any other if it is the last', { retryForMs: 10_000, leftMs: 2_000 }, undefined],
])('after a try without a response, a repeat may take %s', (_, given, limitMs) => {
  expect(limitOfRepeat(given)).toBe(limitMs)
})

test.each([
  ['unreachable', 2_000, true],
  ['unreachable', 1_999, false],
  ['redis_unavailable', 10_000, false],
] as const)('a try that fails with %s after %i ms of silence counts as silent: %s', (code, silentForMs, expected) => {
  expect(isSilent(new ProblemError({ code }), silentForMs, 10_000)).toBe(expected)
})
