// Tests how the fleet is formatted as text.
import { expect, test } from 'vitest'
import { busy, fleetOf, idle, P1, pool, queueOf, workerOf } from '../../fleet.fixture.ts'
import { breakerLines, fleetLines } from './fleet-text.ts'

const layout = { now: 0, paint: (style: string, text: string) => `<${style} ${text}>` }
const plainLayout = { ...layout, paint: (_: string, text: string) => text }

test('a fleet without workers shows its queues and says that no workers are running', () => {
  expect(fleetLines(fleetOf([]), undefined, layout)).toEqual([
    'queue  busy  pools  state',
    'cpu    1/4   1      open',
    '',
    'no workers are running',
  ])
})

test('a queue shows what applies to all of its workers', () => {
  const drain = { mode: 'light', since: '2026-01-01T00:09:30.000Z', command: 'c' } as const
  const limits = {
    concurrency: 4,
    rate: { max: 10, perMs: 60_000 },
    maxTasks: 500,
    maxBytes: 67_108_864,
    maxAgeMs: 600_000,
  }
  const queues = [queueOf('files', { admission: 'closed', drain, paused: true, ...limits }), queueOf('cpu', limits)]
  expect(fleetLines(fleetOf([], queues), undefined, layout).slice(1, 3)).toEqual([
    'files  1/4   1      <yellow draining (light), started 30s ago, paused, at most 4 at once, at most 10 starts per 1m, at most 500 tasks, at most 64MiB of tasks, waiting for at most 10m>',
    'cpu    1/4   1      open, at most 4 at once, at most 10 starts per 1m, at most 500 tasks, at most 64MiB of tasks, waiting for at most 10m',
  ])
})

test('a queue shows the limits of its concurrency keys', () => {
  const rate = { max: 100, perMs: 60_000, burst: 5 }
  const queues = [queueOf('cpu', { perConcurrencyKey: { concurrency: 3, rate, ofSingleKeys: 2 } })]
  expect(fleetLines(fleetOf([], queues), undefined, layout)[1]).toBe(
    'cpu    1/4   1      open, at most 3 at once per key, at most 100 starts per 1m and key, 2 limits of single keys',
  )
})

test('a breaker shows its state, its calls, who has set it, and when the next task probes the service', () => {
  const counted = { calls: 8, failures: 2, slow: 0 }
  const breakers = [
    { service: 'crm', state: 'closed' as const, mode: 'auto' as const, ...counted },
    {
      ...{ service: 'smtp', state: 'open' as const, mode: 'auto' as const, calls: 0, failures: 0, slow: 0 },
      since: '2026-01-01T00:09:30.000Z',
      startsAt: '2026-01-01T00:10:30.000Z',
      setBy: { by: 'ann', at: '2026-01-01T00:09:00.000Z' },
    },
  ]
  const fleet = fleetOf([], [queueOf('mail', { breakers }), queueOf('cpu', {})])
  expect(breakerLines(fleet, layout)).toEqual([
    'queue  service  state   since    calls  failed  slow',
    'mail   crm      closed  -        8      2       0',
    'mail   smtp     <red open>    30s ago  -      -       -     set by ann 1m ago, next probe in 30s',
  ])
  const two = fleetOf([], [queueOf('mail', {}), queueOf('cpu', {})])
  expect(breakerLines(two, layout)).toEqual(['no queue has circuit breakers'])
  expect(breakerLines(fleetOf([], [queueOf('cpu', {})]), layout)).toEqual(['cpu has no circuit breakers'])
  expect(fleetLines(fleet, undefined, plainLayout)[1]).toContain('breaker smtp open')
})

test('a queue shows its permits and the concurrency of its definitions', () => {
  const limiters = [
    { kind: 'permits' as const, name: 'db', capacity: 10, inUse: 3 },
    { kind: 'definition' as const, name: 'data.load', capacity: 5, inUse: 5 },
  ]
  expect(fleetLines(fleetOf([], [queueOf('cpu', { limiters })]), undefined, layout)[1]).toBe(
    'cpu    1/4   1      open, 3 of 10 db permits in use, 5 of 5 data.load at once',
  )
})

test('a limit of one is shown in the singular', () => {
  const queues = [queueOf('cpu', { rate: { max: 1, perMs: 60_000 }, maxTasks: 1 })]
  expect(fleetLines(fleetOf([], queues), undefined, layout)[1]).toBe(
    'cpu    1/4   1      open, at most 1 start per 1m, at most 1 task',
  )
})

test('workers and pools show anything unusual', () => {
  const unusual = pool({
    queue: 'files',
    state: 'SHUTTING_DOWN',
    label: 'draining',
    paused: true,
    stuckHandlers: 2,
    notReady: 'Redis is unreachable',
  })
  const fleet = fleetOf([
    workerOf(P1, { draining: true, skewMs: 1_500, pools: [unusual, pool()] }),
    workerOf('z-silent:1:x', { alive: false, seenAt: '2026-01-01T00:09:48.000Z', skewMs: -90_000, host: 'h' }),
  ])
  expect(fleetLines(fleet, undefined, layout).slice(3)).toEqual([
    `${P1}  draining, up 10m, version 0.2.0, clock 1.5s ahead of Redis`,
    '  cpu    running   1/4',
    '  files  <yellow draining>  1/4  2 stuck handlers, not accepting tasks: Redis is unreachable',
    '<red z-silent:1:x>  no heartbeat for 12s, on h, version 0.2.0, clock 1m behind Redis',
    '  cpu  running  1/4',
  ])
})

test('slots are listed below their pool, by the name that `bullpen stop` accepts', () => {
  const slots = [
    { ...busy(10, 5), state: 'TERMINATING_STOP_SIGNAL' as const, label: 'stopping' as const },
    idle(2),
    busy(1, 30),
  ]
  const others = [
    { ...idle(3), worker: 'other' },
    { ...idle(4), queue: 'files' },
  ]
  expect(fleetLines(fleetOf([workerOf(P1)]), [...slots, ...others], plainLayout).slice(4)).toEqual([
    '  cpu  running  1/4',
    `    ${P1}/cpu/1   running a task  30s  math.factorial  cpu-01jd3v7n8q0000000000000000`,
    `    ${P1}/cpu/2   idle            1m`,
    `    ${P1}/cpu/10  stopping        5s   math.factorial  cpu-01jd3v7n8q0000000000000000`,
  ])
})

test('a terminal of 80 columns shows everything in lines of at most 80 characters', () => {
  const long = 'bullpen-worker-7d9f8c6b5d-x2x9z:1:a3f84945'
  const limits = { concurrency: 4, rate: { max: 10, perMs: 60_000 }, paused: true }
  const pools = [pool({ paused: true, stuckHandlers: 2, notReady: 'more handlers go on than are allowed to' })]
  const fleet = fleetOf([workerOf(long, { pools, skewMs: 5_000, draining: true })], [queueOf('cpu', limits)])
  const slots = [busy(1, 30), busy(2, 5)].map((slot) => ({ ...slot, worker: long }))
  const narrow = fleetLines(fleet, slots, { ...plainLayout, columns: 80 })
  expect(Math.max(...narrow.map((line) => line.length))).toBeLessThanOrEqual(80)
  const words = (lines: readonly string[]) => lines.join(' ').split(/ +/)
  expect(words(narrow)).toEqual(words(fleetLines(fleet, slots, plainLayout)))
})

test('names cannot move the cursor', () => {
  const hostile = 'über pod/1\u001b[2J\n\u009b1m'
  const fleet = fleetOf([workerOf(hostile, { host: '\u0007', version: '\u001b]0;x\u0007' })])
  const slots = [{ ...busy(1, 1, { task: 'a\u001b[1m' }), worker: hostile }]
  const text = fleetLines(fleet, slots, plainLayout).join('\n')
  expect(text).not.toMatch(/[\p{Cc}--\n]/v)
  expect(text).toContain('über pod/1 [2J 1m/cpu/1')
})

test('a pool is shown as paused if it or its whole queue is paused', () => {
  const [paused, running] = [pool({ queue: 'cpu', paused: true }), pool({ queue: 'files' })]
  const fleet = fleetOf([workerOf(P1, { pools: [paused, running] })], [queueOf('cpu'), queueOf('files')])
  expect(fleetLines(fleet, undefined, plainLayout).slice(5)).toEqual(['  cpu    paused   1/4', '  files  running  1/4'])
  const whole = { ...fleet, queues: [queueOf('cpu'), queueOf('files', { paused: true })] }
  expect(fleetLines(whole, undefined, plainLayout).slice(5)).toEqual(['  cpu    paused  1/4', '  files  paused  1/4'])
})

test('workers are listed in the same order whatever the order of the answer', () => {
  const workers = [workerOf('b:1:x'), workerOf('c:1:x'), workerOf('a:1:x')]
  expect(fleetLines(fleetOf(workers), undefined, plainLayout)).toEqual(
    fleetLines(fleetOf(workers.toReversed()), undefined, plainLayout),
  )
})
