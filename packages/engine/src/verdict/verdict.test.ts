import { DEFAULT_RETRY, TaskError } from '@bullpen/contract'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Outcome } from '../ports/attempt-result.ts'
import { declaredFailure } from './outcome.ts'
import { decide } from './verdict.ts'

const halfway = (): number => 0.5
const now = 1_700_000_000_000
const first = {
  attempt: 1,
  maxAttempts: 3,
  uncounted: 0,
  totalTimeoutAt: 'none',
  neverStarted: false,
  onInterrupt: 'requeue',
} as const
const last = {
  attempt: 3,
  maxAttempts: 3,
  uncounted: 0,
  totalTimeoutAt: 'none',
  neverStarted: false,
  onInterrupt: 'requeue',
} as const
const panic: Outcome = { kind: 'panicked', reason: 'unexpected_error', error: new Error('boom') }
const timeout: Outcome = { kind: 'timed_out', reason: 'run_timeout', limitMs: 10 }

describe('the verdict', () => {
  it('completes a task whose handler returned, with its output', () => {
    expect(decide(first, { kind: 'returned', output: 42 }, DEFAULT_RETRY, now, halfway)).toEqual({
      kind: 'completed',
      output: 42,
    })
  })

  it('requeues a task whose attempt a drain closed, also after the last attempt', () => {
    expect(decide(last, { kind: 'closed', reason: 'drain' }, DEFAULT_RETRY, now, halfway)).toEqual({
      kind: 'requeued',
    })
  })

  it.each(['queue', 'concurrencyKey'] as const)(
    'requeues a rate-limited task and throttles its %s, also after the last attempt',
    (of) => {
      expect(decide(last, { kind: 'rate_limited', delayMs: 30_000, of }, DEFAULT_RETRY, now, halfway)).toEqual({
        kind: 'requeued',
        throttleMs: 30_000,
        throttled: of,
      })
    },
  )

  it.each<[string, Outcome, string]>([
    ['a drain', { kind: 'closed', reason: 'drain' }, 'dead'],
    ['a closed parent', { kind: 'closed', reason: 'parent_closed' }, 'dead'],
    ['a hard stop of its slot', { kind: 'stopped', reason: 'slot_stopped' }, 'dead'],
    ['a lost lock', { kind: 'closed', reason: 'lock_lost' }, 'lost'],
    ['a cancel', { kind: 'stopped', reason: 'cancelled' }, 'cancelled'],
    ['a timeout', timeout, 'retrying'],
    ['a panic', panic, 'retrying'],
  ])('of a task that fails when it is interrupted, after %s', (_, outcome, kind) => {
    expect(decide({ ...first, onInterrupt: 'fail' }, outcome, DEFAULT_RETRY, now, halfway).kind).toBe(kind)
  })

  it.each([
    ['a panic', panic],
    ['a timeout', timeout],
    ['a retryable declared failure', declaredFailure(new TaskError('busy', 'try later'))],
  ])('retries %s while attempts are left, and buries it after', (_, outcome) => {
    expect(decide(first, outcome, DEFAULT_RETRY, now, halfway)).toEqual({ kind: 'retrying', delayMs: 1_000 })
    expect(decide(last, outcome, DEFAULT_RETRY, now, halfway)).toEqual({ kind: 'dead' })
  })

  it('buries a permanent failure at once', () => {
    const error = new TaskError('no_such_user', 'gone', { retryable: false })
    expect(decide(first, declaredFailure(error), DEFAULT_RETRY, now, halfway)).toEqual({ kind: 'dead' })
  })

  it('waits at least as long as the failure asks, and never shorter than the backoff', () => {
    const after = (retryAfter: '1ms' | '1m'): Outcome => declaredFailure(new TaskError('busy', '', { retryAfter }))
    expect(decide(first, after('1m'), DEFAULT_RETRY, now, halfway)).toEqual({ kind: 'retrying', delayMs: 60_000 })
    expect(decide(first, after('1ms'), DEFAULT_RETRY, now, halfway)).toEqual({ kind: 'retrying', delayMs: 1_000 })
  })

  it('leaves a task that the worker cannot run to another one for about an hour, without counting the attempts', () => {
    const unsupported: Outcome = { kind: 'unsupported', code: 'unknown_task', error: new Error('unknown') }
    const after = (uncounted: number) =>
      decide({ ...last, uncounted, onInterrupt: 'fail' }, unsupported, DEFAULT_RETRY, now, halfway)
    expect([after(0), after(1)]).toEqual([
      { kind: 'snoozed', delayMs: 750 },
      { kind: 'snoozed', delayMs: 1_500 },
    ])
    let waitedMs = 0
    let verdict = after(0)
    for (let n = 1; verdict.kind === 'snoozed'; n++) {
      waitedMs += verdict.delayMs
      verdict = after(n)
    }
    expect(verdict.kind).toBe('dead')
    expect(waitedMs / 60_000).toBeCloseTo(55, 0)
    expect(decide({ ...first, uncounted: 1_000 }, unsupported, DEFAULT_RETRY, now, halfway).kind).toBe('retrying')
  })

  it('never retries past the last attempt, whatever the numbers', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 1_000 }), (attempt, maxAttempts) => {
        const { kind } = decide({ ...first, attempt, maxAttempts }, panic, DEFAULT_RETRY, now, halfway)
        expect(kind).toBe(attempt < maxAttempts ? 'retrying' : 'dead')
      }),
    )
  })

  it('buries what would be tried again only after its deadline', () => {
    const until = (totalTimeoutAt: number) =>
      decide({ ...first, totalTimeoutAt }, panic, DEFAULT_RETRY, now, halfway).kind
    expect([until(now + 1_001), until(now + 1_000), until(now - 1)]).toEqual(['retrying', 'dead', 'dead'])
  })
})
