// Tests how the API returns what a task waits for.
import { expect, test } from 'vitest'
import type { WaitsFor } from '../../task/waits-for.ts'
import { waitView, waitViewSchema } from './wait-view.ts'

const until = Date.parse('2030-01-02T03:04:05Z')
const T = '2030-01-02T03:04:05.000Z'
const ahead = 2

/** One of each kind, so that a further kind does not compile without its text. */
const TEXTS: { readonly [K in WaitsFor['kind']]: readonly [Extract<WaitsFor, { kind: K }>, string] } = {
  scheduled: [{ kind: 'scheduled', until }, `its due time, ${T}`],
  retry: [{ kind: 'retry', until, attempt: 2, maxAttempts: 5 }, `attempt 2 of 5, which is due at ${T}`],
  unsupported: [
    { kind: 'unsupported', until, worker: 'old:1', code: 'unknown_task' },
    `a worker that can run it, because old:1 could not (unknown_task); it is due again at ${T}`,
  ],
  quarantine: [{ kind: 'quarantine', until }, `a worker with room for quarantined tasks; it is due again at ${T}`],
  recovery: [{ kind: 'recovery' }, 'the leader to return it to its queue, because its worker was lost'],
  paused: [{ kind: 'paused', since: until, by: 'ann' }, `queue cpu to be resumed (paused by ann since ${T})`],
  drain: [
    { kind: 'drain', mode: 'soft', since: until, by: 'ann' },
    `queue cpu to be resumed (soft drain by ann since ${T})`,
  ],
  outbox: [{ kind: 'outbox' }, 'room in the outbox of queue cpu, which is full'],
  no_worker: [{ kind: 'no_worker', since: until }, `a worker that serves queue cpu; none has served it since ${T}`],
  workers_draining: [
    { kind: 'workers_draining', workers: 1 },
    'a worker that serves queue cpu; the only one is shutting down',
  ],
  workers_paused: [
    { kind: 'workers_paused', workers: 2 },
    'a worker of queue cpu to be resumed; all 2 workers are paused',
  ],
  workers_not_ready: [
    { kind: 'workers_not_ready', workers: 2, reason: 'Redis is not connected' },
    'a worker of queue cpu to become ready; all 2 workers are not ready (Redis is not connected)',
  ],
  workers_reserved: [
    { kind: 'workers_reserved', workers: 2 },
    'a worker that runs any task of queue cpu; all 2 workers are reserved for other tasks',
  ],
  throttle: [{ kind: 'throttle', until }, `the end of the throttle of queue cpu at ${T}`],
  queue_rate: [
    { kind: 'queue_rate', until, max: 10, perMs: 60_000 },
    `the rate limit of queue cpu (10 per 1m), next start at ${T}`,
  ],
  queue_concurrency: [
    { kind: 'queue_concurrency', limit: 4, ahead },
    'the concurrency limit of queue cpu (4), after 2 tasks',
  ],
  slot: [{ kind: 'slot', slots: 4, busy: 4, ahead }, 'a free slot of queue cpu (4 of 4 busy), after 2 tasks'],
  turn: [{ kind: 'turn', ahead }, 'its turn, after 2 tasks of the same concurrency key'],
  concurrency: [
    { kind: 'concurrency', ahead },
    'the concurrency limit of its concurrency key, after 2 tasks of the same concurrency key',
  ],
  rate: [
    { kind: 'rate', until, ahead },
    `the rate limit of its concurrency key, next start at ${T}, after 2 tasks of the same concurrency key`,
  ],
  permits: [{ kind: 'permits', limiter: 'db', ahead }, 'db permits, after 2 tasks with the same needs'],
  definition: [
    { kind: 'definition', limiter: 'data.load', ahead },
    'the concurrency limit of data.load, after 2 tasks with the same needs',
  ],
  breaker: [{ kind: 'breaker', service: 'smtp', until, ahead: 0 }, `the circuit breaker of smtp, next probe at ${T}`],
}

const task = { queue: 'cpu', concurrencyKey: 'acme' }

test.each(Object.entries(TEXTS))(
  'a task that waits for %s says so in words and in the fields of its kind',
  (kind, [wait, text]) => {
    const view = waitView(wait, task)
    expect(view).toMatchObject({ kind, text })
    expect(waitViewSchema.parse(view)).toEqual(view)
  },
)

test('a text leaves out what is not known, and does not count beyond 1,000', () => {
  const textOf = (wait: WaitsFor) => waitView(wait, task).text
  expect(textOf({ kind: 'paused' })).toBe('queue cpu to be resumed (paused)')
  expect(textOf({ kind: 'no_worker' })).toBe('a worker that serves queue cpu; no worker is known to have served it')
  expect(textOf({ kind: 'breaker', service: 'smtp', ahead: 0 })).toBe('the circuit breaker of smtp')
  expect(textOf({ kind: 'slot', slots: 4, busy: 3, ahead: 0 })).toBe(
    'a worker of queue cpu to fetch it (3 of 4 slots busy)',
  )
  expect(textOf({ kind: 'turn', ahead: 1_000 })).toBe('its turn, after at least 1000 tasks of the same concurrency key')
  expect(textOf({ kind: 'turn', ahead: 1 })).toBe('its turn, after 1 task of the same concurrency key')
})
