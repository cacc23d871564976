// Tests which reason counts if several keep a task from running, and that there always is one.
import type { AttemptRecord } from '@bullpen/contract'
import { TASK_STATUSES } from '@bullpen/contract/internal'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { livePools, type WaitFacts, whyWaiting } from './wait-reason.ts'

const NOW = 1_000_000
const pool = { state: 'BG_RUNNING', paused: false, concurrency: 4, busy: 4, notReady: undefined } as const
const facts = (given: Partial<WaitFacts>): WaitFacts => ({
  now: NOW,
  task: { status: 'waiting', dueAt: undefined, attemptsMade: 0, maxAttempts: 5, attempts: [] },
  lane: undefined,
  isPostponed: false,
  isLost: false,
  ahead: 0,
  pause: undefined,
  drain: undefined,
  isOutboxFull: false,
  throttledUntil: undefined,
  usedRate: undefined,
  concurrency: undefined,
  active: 4,
  pools: [pool],
  servedAt: NOW,
  ...given,
})

const later = { status: 'retrying', dueAt: NOW + 1, attemptsMade: 1, maxAttempts: 5, attempts: [] } as const
const left: AttemptRecord = {
  ...{ fencingToken: 2, attempt: 1, counted: false, state: 'DONE_ERROR', code: 'unknown_task' },
  ...{ worker: 'old:1', startedAt: 1, endedAt: 2 },
}
const until = NOW + 7
const drain = { mode: 'soft', since: 5, by: 'ann' } as const
const rate = { until, max: 10, perMs: 60_000 }

/** Each reason, from the most specific one, with the facts that it needs besides those of all reasons below it. */
const REASONS: readonly (readonly [Partial<WaitFacts>, object])[] = [
  [{ isLost: true }, { kind: 'recovery' }],
  [
    { task: later, isPostponed: true },
    { kind: 'quarantine', until: NOW + 1 },
  ],
  [
    { task: { ...later, status: 'scheduled', attempts: [left] } },
    { kind: 'unsupported', until: NOW + 1, worker: 'old:1', code: 'unknown_task' },
  ],
  [{ task: later }, { kind: 'retry', until: NOW + 1, attempt: 2, maxAttempts: 5 }],
  [{ drain }, { kind: 'drain', ...drain }],
  [{ pause: { since: 3, by: 'bob' } }, { kind: 'paused', since: 3, by: 'bob' }],
  [{ isOutboxFull: true }, { kind: 'outbox' }],
  [
    { pools: [], servedAt: 9 },
    { kind: 'no_worker', since: 9 },
  ],
  [{ pools: [{ ...pool, state: 'SHUTTING_DOWN' }] }, { kind: 'workers_draining', workers: 1 }],
  [{ pools: [{ ...pool, paused: true }] }, { kind: 'workers_paused', workers: 1 }],
  [{ pools: [{ ...pool, notReady: 'no memory' }] }, { kind: 'workers_not_ready', workers: 1, reason: 'no memory' }],
  [{ pools: [{ ...pool, state: 'ONLINE_RUNNING' }] }, { kind: 'workers_reserved', workers: 1 }],
  [{ throttledUntil: until }, { kind: 'throttle', until }],
  [{ usedRate: rate }, { kind: 'queue_rate', ...rate }],
  [
    { concurrency: 4, ahead: 3 },
    { kind: 'queue_concurrency', limit: 4, ahead: 3 },
  ],
  [{ lane: { kind: 'permits', limiter: 'db', ahead: 2 } }, { kind: 'permits', limiter: 'db', ahead: 2 }],
  [{ ahead: 3 }, { kind: 'slot', slots: 4, busy: 4, ahead: 3 }],
]

test.each(REASONS.map(([given, reason], i) => [reason, given, REASONS.slice(i + 1)] as const))(
  '%j counts, whatever holds besides',
  (reason, given, below) => {
    expect(whyWaiting(facts(given))).toEqual(reason)
    for (const [other] of below)
      expect(whyWaiting(facts({ ...other, ...given })), JSON.stringify(other)).toEqual(reason)
  },
)

test('a scheduled task waits for its time, and once it is due, for whatever other tasks wait for', () => {
  const task = { status: 'scheduled', dueAt: NOW + 1, attemptsMade: 0, maxAttempts: 5, attempts: [] } as const
  expect(whyWaiting(facts({ task, pools: [] }))).toEqual({ kind: 'scheduled', until: NOW + 1 })
  expect(whyWaiting(facts({ task: { ...task, dueAt: NOW }, pools: [] }))?.kind).toBe('no_worker')
})

test('a task that a worker could not run waits for another worker until it fails, is snoozed or is due', () => {
  const kindOf = (status: 'scheduled' | 'retrying', last: object, dueAt = NOW + 1) =>
    whyWaiting(facts({ task: { ...later, status, dueAt, attempts: [left, { ...left, ...last }] } }))?.kind
  expect(kindOf('scheduled', {})).toBe('unsupported')
  expect(kindOf('scheduled', {}, NOW)).toBe('slot')
  expect(kindOf('retrying', { counted: true })).toBe('retry')
  expect(kindOf('scheduled', { state: 'TERMINATED_CTX_CLOSED', reason: 'snoozed' })).toBe('scheduled')
})

test('a pool that has not started does not count, so no worker that starts is taken for one that shuts down', () => {
  const starting = { ...pool, state: 'NEW' as const, busy: 0 }
  expect(whyWaiting(facts({ pools: [starting], servedAt: 9 }))).toEqual({ kind: 'no_worker', since: 9 })
  const paused = { ...pool, paused: true }
  expect(whyWaiting(facts({ pools: [starting, paused] }))).toEqual({ kind: 'workers_paused', workers: 1 })
})

test('one worker that can start tasks is enough', () => {
  const others = [
    { ...pool, paused: true },
    { ...pool, state: 'SHUTTING_DOWN' as const },
  ]
  expect(whyWaiting(facts({ pools: [...others, { ...pool, busy: 1 }] }))).toEqual({
    kind: 'slot',
    slots: 4,
    busy: 1,
    ahead: 0,
  })
})

test('the pools of silent workers and of other queues do not count, and those of a worker that shuts down are draining', () => {
  const of = (queue: string) => ({ ...pool, queue, stuckHandlers: 0, slots: [] })
  const worker = {
    ...{ worker: 'w', host: 'h', pid: 1, version: '1', startedAt: 0, draining: false, skewMs: 0 },
    ...{ drainTimeoutMs: 0, graceMs: 0, pools: [of('cpu'), of('io')], seenAt: NOW },
  }
  const silent = { ...worker, seenAt: NOW - 6_001 }
  expect(livePools([worker, silent], 'cpu', NOW)).toEqual([of('cpu')])
  expect(livePools([{ ...worker, draining: true }], 'io', NOW)).toMatchObject([{ state: 'SHUTTING_DOWN' }])
})

const optional = <T>(of: fc.Arbitrary<T>) => fc.option(of, { nil: undefined })
const time = fc.integer({ min: NOW - 9, max: NOW + 9 })
const anyFacts: fc.Arbitrary<WaitFacts> = fc
  .record({
    status: fc.constantFrom(...TASK_STATUSES),
    dueAt: optional(time),
    attempts: fc.constantFrom<AttemptRecord[]>([], [left], [{ ...left, counted: true }]),
    isPostponed: fc.boolean(),
    isLost: fc.boolean(),
    pause: optional(fc.constant({})),
    drain: optional(fc.constant(drain)),
    isOutboxFull: fc.boolean(),
    throttledUntil: optional(time),
    usedRate: optional(fc.constant(rate)),
    concurrency: optional(fc.nat(9)),
    active: fc.nat(9),
    lane: optional(fc.constant({ kind: 'turn', ahead: 1 } as const)),
    pools: fc.array(
      fc.record({
        state: fc.constantFrom('NEW', 'BG_RUNNING', 'ONLINE_RUNNING', 'SHUTTING_DOWN', 'SHUTDOWN'),
        paused: fc.boolean(),
        concurrency: fc.nat(4),
        busy: fc.nat(9),
        notReady: optional(fc.constant('no memory')),
      }),
      { maxLength: 3 },
    ),
    servedAt: optional(time),
  })
  .map(({ status, dueAt, attempts, ...given }) =>
    facts({ ...given, task: { status, dueAt, attempts, attemptsMade: 1, maxAttempts: 5 } }),
  )

test('a task that is waiting, scheduled or retrying always has a reason, and no other task has one', () => {
  fc.assert(
    fc.property(anyFacts, (given) => {
      const isWaiting = ['waiting', 'scheduled', 'retrying'].includes(given.task.status)
      expect(whyWaiting(given) !== undefined).toBe(isWaiting)
    }),
  )
})
