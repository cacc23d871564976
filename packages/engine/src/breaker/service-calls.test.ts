// Tests which ends of attempts count as calls of a service, and which calls have failed.
import { type BreakerOptions, defineQueue, defineTask } from '@bullpen/contract'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { Outcome } from '../ports/attempt-result.ts'
import { serviceCalls, servicesOf } from './service-calls.ts'

const error = new Error('no')
const declared = (code: string, retryable: boolean): Outcome => ({
  kind: 'declared',
  failure: { code, retryable, retryAfterMs: undefined },
  error,
})
const OUTCOMES = {
  returned: { kind: 'returned', output: 1 },
  http_503: declared('http_503', true),
  http_404: declared('http_404', false),
  redis_unavailable: declared('redis_unavailable', true),
  unsupported: { kind: 'unsupported', code: 'unknown_task', error },
  unexpected_error: { kind: 'panicked', reason: 'unexpected_error', error },
  invalid_output: { kind: 'panicked', reason: 'invalid_output', error },
  out_of_memory: { kind: 'panicked', reason: 'out_of_memory', error },
  run_timeout: { kind: 'timed_out', reason: 'run_timeout', limitMs: 1 },
  heartbeat_timeout: { kind: 'timed_out', reason: 'heartbeat_timeout', limitMs: 1 },
  total_timeout: { kind: 'timed_out', reason: 'total_timeout', limitMs: 1 },
  drain: { kind: 'closed', reason: 'drain' },
  lock_lost: { kind: 'closed', reason: 'lock_lost' },
  cancelled: { kind: 'stopped', reason: 'cancelled' },
  snoozed: { kind: 'snoozed', delayMs: 1 },
  rate_limited: { kind: 'rate_limited', of: 'queue', delayMs: 1 },
} as const satisfies Record<string, Outcome>

function taskWith(smtp: BreakerOptions, crm: BreakerOptions = {}) {
  const queue = defineQueue({ name: 'mail', breakers: { smtp, crm } })
  return defineTask({ name: 'mail.send', queue, input: z.object({}), dependsOn: ['smtp'] })
}

/** Returns the names of the outcomes after which the call of a service has failed, has succeeded, or is unknown. */
function resultsWith(smtp: BreakerOptions) {
  const task = taskWith(smtp)
  const names = Object.keys(OUTCOMES) as (keyof typeof OUTCOMES)[]
  return Object.groupBy(names, (name) => {
    const calls = serviceCalls(task, OUTCOMES[name], 5)
    return calls === undefined ? 'unknown' : calls[0]?.failed === true ? 'failed' : 'succeeded'
  })
}

test('retryable failures, unexpected errors and timeouts of an attempt are failed calls', () => {
  expect(resultsWith({})).toEqual({
    failed: ['http_503', 'unexpected_error', 'run_timeout', 'heartbeat_timeout'],
    succeeded: ['returned', 'http_404'],
    unknown: [
      'redis_unavailable',
      'unsupported',
      'invalid_output',
      'out_of_memory',
      'total_timeout',
      'drain',
      'lock_lost',
      'cancelled',
      'snoozed',
      'rate_limited',
    ],
  })
})

test('with failure codes, only failures with these codes are failed calls, and other declared failures are successful ones', () => {
  expect(resultsWith({ failureCodes: ['http_404', 'total_timeout', 'out_of_memory'] })).toMatchObject({
    failed: ['http_404', 'out_of_memory', 'total_timeout'],
    succeeded: ['returned', 'http_503'],
  })
})

test('a call that takes at least the slow duration is slow, whether it fails or not', () => {
  const task = taskWith({ slowCallDuration: '100ms' })
  const slow = (name: keyof typeof OUTCOMES, durationMs: number) => serviceCalls(task, OUTCOMES[name], durationMs)?.[0]
  expect(slow('returned', 99)).toMatchObject({ failed: false, slow: false })
  expect(slow('returned', 100)).toMatchObject({ failed: false, slow: true })
  expect(slow('http_503', 100)).toMatchObject({ failed: true, slow: true })
  expect(slow('drain', 100)).toBeUndefined()
  expect(serviceCalls(taskWith({}), OUTCOMES.returned, 1e9)?.[0]?.slow).toBe(false)
})

test('a failure shows nothing about a service that has not caused it if the task may not have called the service', () => {
  const smtp = { failureCodes: ['smtp_421'] }
  const crm = { failureCodes: ['http_503'] }
  const task = { ...taskWith(smtp, crm), dependsOn: ['crm', 'smtp'] }
  expect(serviceCalls(task, OUTCOMES.http_503, 5)).toMatchObject([{ service: 'crm', failed: true }])
  expect(serviceCalls(task, OUTCOMES.http_404, 5)).toBeUndefined()
  expect(serviceCalls(task, OUTCOMES.returned, 5)).toMatchObject([
    { service: 'crm', failed: false },
    { service: 'smtp', failed: false },
  ])
})

test('a task without dependencies makes no calls', () => {
  expect(serviceCalls({ ...taskWith({}), dependsOn: [] }, OUTCOMES.http_503, 5)).toBeUndefined()
})

test('a task in another queue depends only on the breakers of that queue', () => {
  const task = { dependsOn: ['crm', 'smtp'] }
  expect(servicesOf(task, defineQueue({ name: 'a', breakers: { smtp: {}, other: {} } }))).toEqual(['smtp'])
  expect(servicesOf(task, defineQueue({ name: 'b' }))).toBeUndefined()
})
