// Tests how a call overrides its definition's retry policy, and which overrides are refused.
import { type CallOptions, type CallRetry, defineTask, milliseconds, type RetryOptions } from '@bullpen/contract'
import { callOptionsSchema, createTaskId } from '@bullpen/contract/internal'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { backoffMs } from '../verdict/backoff.ts'
import { newTask } from './new-task.ts'

const origin = { id: createTaskId('q', 1, new Uint8Array(10)), enqueuedAt: 1_000, correlationId: 'c-1' }

function define(retry: RetryOptions = {}) {
  return defineTask({ name: 'payment.charge', queue: 'q', input: z.object({}), retry })
}

function taskOf(retry: RetryOptions, call: CallOptions) {
  return newTask(define(retry), {}, call, origin)
}

const refusal = (pointer: string, message: string) =>
  expect.objectContaining({ code: 'invalid_request', errors: [{ pointer, message: expect.stringContaining(message) }] })

const WIDE = { callBounds: { maxAttempts: 20, minDelay: '100ms', maxDelay: '1h', totalTimeout: '1d' } } as const

describe('a call', () => {
  it('without retry settings stores none', () => {
    expect(taskOf(WIDE, {})).toMatchObject({ maxAttempts: 5, backoff: undefined })
    expect(taskOf(WIDE, { retry: { maxAttempts: 20 } })).toMatchObject({ maxAttempts: 20, backoff: undefined })
  })

  it('changes only the settings that it has', () => {
    const own: RetryOptions = { backoff: { initialDelay: '2s', maxDelay: '8s', factor: 3, jitter: 0.1 }, ...WIDE }
    const backoffOf = (backoff: CallRetry['backoff'] & object) => taskOf(own, { retry: { backoff } }).backoff
    const exponential = { type: 'exponential', initialMs: 2_000, maxMs: 8_000, factor: 3, jitter: 0.1 }
    expect(backoffOf({ jitter: 'full' })).toEqual({ ...exponential, jitter: 'full' })
    expect(backoffOf({ initialDelay: '20s' })).toEqual({ ...exponential, initialMs: 20_000, maxMs: 20_000 })
    expect(backoffOf({ factor: 1.5, maxDelay: '1h' })).toEqual({ ...exponential, maxMs: 3_600_000, factor: 1.5 })
    expect(backoffOf({ type: 'fixed' })).toEqual({ type: 'fixed', initialMs: 2_000, jitter: 0.1 })
    expect(backoffOf({ type: 'linear', initialDelay: '3s' })).toEqual({
      type: 'linear',
      initialMs: 3_000,
      maxMs: 8_000,
      jitter: 0.1,
    })
    expect(backoffOf({ type: 'list', delays: ['100ms', '1h'] })).toEqual({
      type: 'list',
      delaysMs: [100, 3_600_000],
      jitter: 0.1,
    })
  })

  it('gets the usual defaults, as far as the bounds allow, for settings that the definition’s type lacks', () => {
    const list: RetryOptions = { backoff: { type: 'list', delays: ['5s', '9s'] } }
    expect(taskOf(list, { retry: { backoff: { type: 'exponential' } } }).backoff).toEqual({
      type: 'exponential',
      initialMs: 5_000,
      maxMs: 9_000,
      factor: 2,
      jitter: 0.2,
    })
    expect(taskOf(list, { retry: { backoff: { jitter: 0 } } }).backoff).toMatchObject({ delaysMs: [5_000, 9_000] })
  })

  it.each<[CallOptions, string, string]>([
    [
      { retry: { maxAttempts: 21 } },
      '/retry/maxAttempts',
      'at most 20 (retry.callBounds.maxAttempts of payment.charge)',
    ],
    [
      { retry: { backoff: { initialDelay: '99ms' } } },
      '/retry/backoff/initialDelay',
      "expected at least '100ms' (retry.callBounds.minDelay of payment.charge), got '99ms'",
    ],
    [
      { retry: { backoff: { type: 'fixed', initialDelay: '2h' } } },
      '/retry/backoff/initialDelay',
      "expected at most '1h' (retry.callBounds.maxDelay of payment.charge), got '2h'",
    ],
    [{ retry: { backoff: { maxDelay: '61m' } } }, '/retry/backoff/maxDelay', "expected at most '1h'"],
    [{ retry: { backoff: { maxDelay: '500ms' } } }, '/retry/backoff/maxDelay', "at least the initial delay, '1s'"],
    [
      { retry: { backoff: { type: 'list', delays: ['1s', '1ms'] } } },
      '/retry/backoff/delays/1',
      "expected at least '100ms'",
    ],
    [{ retry: { backoff: { type: 'list' } } }, '/retry/backoff/delays', 'missing'],
    [
      { retry: { backoff: { type: 'fixed', factor: 2 } } },
      '/retry/backoff/factor',
      "'fixed' does not have this setting",
    ],
    [{ retry: { backoff: { delays: ['1s'] } } }, '/retry/backoff/delays', 'it has initialDelay, maxDelay, factor'],
    [
      { totalTimeout: '25h' },
      '/totalTimeout',
      "expected at most '1d' (retry.callBounds.totalTimeout of payment.charge), got '25h'",
    ],
    [{ totalTimeout: 'none' }, '/totalTimeout', "expected at most '1d'"],
  ])('is refused: %j', (call, pointer, message) => {
    expect(() => taskOf(WIDE, call)).toThrow(refusal(pointer, message))
  })

  it('may set any total timeout if the definition has no bound for it', () => {
    expect(taskOf({}, { totalTimeout: 'none' }).totalMs).toBe('none')
    expect(taskOf({}, { totalTimeout: '365d' }).totalMs).toBe(milliseconds('365d'))
  })

  it('either gets delays and attempts within the bounds, or is refused with the place of the setting', () => {
    const ms = fc.integer({ min: 1, max: 2_000 })
    const duration = ms.map((each) => `${each}ms` as const)
    const jitter = fc.constantFrom<number | 'full'>(0, 0.2, 'full')
    const type = fc.constantFrom('exponential', 'linear', 'fixed', 'list')
    const call: fc.Arbitrary<CallRetry> = fc.record(
      {
        maxAttempts: fc.integer({ min: 1, max: 12 }),
        backoff: fc.record(
          {
            type,
            initialDelay: duration,
            maxDelay: duration,
            factor: fc.double({ min: 1, max: 100, noNaN: true }),
            delays: fc.array(duration, { minLength: 1, maxLength: 4 }),
            jitter,
          },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: [] },
    )
    const policy: fc.Arbitrary<RetryOptions> = fc
      .tuple(fc.integer({ min: 1, max: 6 }), type, ms, fc.tuple(fc.nat(5), fc.nat(500), fc.nat(500)), jitter)
      .map(([maxAttempts, kind, shortest, [more, shorter, longer], jittered]) => {
        const longest = kind === 'fixed' ? shortest : shortest + 300
        const options =
          kind === 'list'
            ? { type: kind, delays: [`${longest}ms`, `${shortest}ms`] as const }
            : kind === 'fixed'
              ? { type: kind, initialDelay: `${shortest}ms` as const }
              : { type: kind, initialDelay: `${shortest}ms` as const, maxDelay: `${longest}ms` as const }
        return {
          maxAttempts,
          backoff: { ...options, jitter: jittered },
          callBounds: {
            maxAttempts: maxAttempts + more,
            minDelay: `${Math.max(1, shortest - shorter)}ms`,
            maxDelay: `${longest + longer}ms`,
          },
        }
      })
    let accepted = 0
    fc.assert(
      fc.property(policy, call, fc.integer({ min: 1, max: 12 }), (retry, wanted, attempt) => {
        expect(callOptionsSchema.safeParse({ retry: wanted }).success).toBe(true)
        const definition = define(retry)
        const { minDelayMs, maxDelayMs, maxAttempts } = definition.retry.callBounds
        try {
          const task = newTask(definition, {}, { retry: wanted }, origin)
          accepted++
          expect(task.maxAttempts).toBeLessThanOrEqual(maxAttempts)
          const { backoff = definition.retry.backoff } = task
          const delayMs = backoffMs(attempt, { ...backoff, jitter: 0 }, Math.random)
          expect(delayMs).toBeGreaterThanOrEqual(minDelayMs)
          expect(delayMs).toBeLessThanOrEqual(maxDelayMs)
        } catch (error) {
          expect(error).toMatchObject({
            code: 'invalid_request',
            errors: [{ pointer: expect.stringMatching(/^\/retry\/(maxAttempts|backoff\/\w+(\/\d)?)$/) }],
          })
        }
      }),
      { numRuns: 500 },
    )
    expect(accepted).toBeGreaterThan(20)
  })
})
