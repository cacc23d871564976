// Tests what a drain is said to meet: which of the running tasks end by themselves before its deadline.
import { expect, test } from 'vitest'
import { busy, fleetOf, idle, NOW, P1, P2, pool, processOf } from '../fleet.fixture.ts'
import { forecastLines } from '../output/forecast-text.ts'
import { type DrainPlan, forecast } from './drain-forecast.ts'

const SOFT_TIMEOUT: DrainPlan = { mode: 'soft_timeout', timeoutMs: undefined }
const inSeconds = (seconds: number): string => new Date(Date.parse(NOW) + seconds * 1_000).toISOString()
const look = { now: 0, paint: (_: string, text: string) => text }

const slots = [
  busy(1, 12, { kind: 'short' }),
  busy(2, 5, { timeoutAt: inSeconds(20) }),
  busy(3, 90, { timeoutAt: inSeconds(21) }),
  busy(4, 1),
  idle(5),
]
const fleet = fleetOf([processOf(P1), processOf(P2, { pools: [pool({ queue: 'files' })] })])

test('a task ends in time when its run timeout passes before the deadline; a short one is waited for', () => {
  expect(forecast(fleet, slots, { worker: P1 }, SOFT_TIMEOUT)).toEqual([
    {
      ...{ worker: P1, running: 4, slowestTaskMs: 90_000, totalMs: 20_000, graceMs: 5_000 },
      ...{ endInTime: 1, maySignal: 2, mayFail: 0, waitedFor: 1, openEnded: 0 },
    },
  ])
})

test.each([
  [
    { mode: 'soft_timeout', timeoutMs: 30_000 },
    { totalMs: 30_000, endInTime: 2, maySignal: 1, waitedFor: 1, openEnded: 0 },
  ],
  [
    { mode: 'hard', timeoutMs: undefined },
    { totalMs: 0, endInTime: 0, maySignal: 3, waitedFor: 1, openEnded: 0 },
  ],
  [
    { mode: 'soft', timeoutMs: undefined },
    { totalMs: undefined, endInTime: 3, maySignal: 0, openEnded: 1 },
  ],
  [
    { mode: 'light', timeoutMs: undefined },
    { totalMs: undefined, endInTime: 3, maySignal: 0, openEnded: 1 },
  ],
] as const)('as %j', (plan, expected) => {
  expect(forecast(fleet, slots, { queue: 'cpu' }, plan)).toMatchObject([{ worker: P1, running: 4, ...expected }])
})

test('a task of unknown kind without a run timeout may be signalled', () => {
  const { kind: _, ...task } = { ...busy(1, 1).task, kind: 'x' }
  const unknown = [{ ...busy(1, 1), task: task as never }]
  expect(forecast(fleet, unknown, { worker: P1 }, SOFT_TIMEOUT)).toMatchObject([{ endInTime: 0, maySignal: 1 }])
})

test('only live workers count, and of them what the target names', () => {
  const silent = fleetOf([processOf(P1, { alive: false }), processOf(P2)])
  expect(forecast(silent, slots, { queue: 'cpu' }, SOFT_TIMEOUT).map(({ worker }) => worker)).toEqual([P2])
  expect(forecast(fleet, slots, { queue: 'files', worker: P1 }, SOFT_TIMEOUT)).toEqual([])
})

test('it is told for each worker, with what it comes to at the end', () => {
  const both = fleetOf([processOf(P1), processOf(P2)])
  expect(forecastLines(forecast(both, slots, { queue: 'cpu' }, SOFT_TIMEOUT), 'cpu', look)).toEqual([
    `${P1}  4 run, longest 1m  1 end within 20s, 2 may be signalled, and handed back 5s later, 1 short, waited for 25s at most`,
    `${P2}   nothing runs`,
    'drain of cpu: 2 of 4 may be signalled and handed back',
  ])
})

test.each([
  [[], SOFT_TIMEOUT, 'nothing runs'],
  [slots.slice(1, 2), SOFT_TIMEOUT, 'all 1 that run end by themselves'],
  [slots.slice(0, 2), SOFT_TIMEOUT, 'it signals none of 2; 1 are short, and waited for'],
  [
    [busy(1, 1, { onInterrupt: 'fail' }), ...slots],
    SOFT_TIMEOUT,
    '2 of 5 may be signalled and handed back, 1 of 5 may be signalled and dead',
  ],
  [slots, { mode: 'soft', timeoutMs: undefined } as const, 'it waits for all 4, 1 of them without a run timeout'],
])('its last line is clear', (running, plan, told) => {
  expect(forecastLines(forecast(fleet, running, { worker: P1 }, plan), P1, look).at(-1)).toBe(`drain of ${P1}: ${told}`)
  expect(forecastLines([], 'cpu', look)).toEqual(['drain of cpu: no live worker works it'])
})
