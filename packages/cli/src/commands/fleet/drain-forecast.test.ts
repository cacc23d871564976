// Tests a drain's forecast: which running tasks will end before its deadline.
import { expect, test } from 'vitest'
import { busy, fleetOf, idle, NOW, P1, P2, pool, workerOf } from '../../fleet.fixture.ts'
import { forecastLines } from '../../output/fleet/forecast-text.ts'
import { type DrainPlan, forecastDrain } from './drain-forecast.ts'

const SOFT_TIMEOUT: DrainPlan = { mode: 'soft_timeout', timeoutMs: undefined }
const inSeconds = (seconds: number): string => new Date(Date.parse(NOW) + seconds * 1_000).toISOString()
const layout = { now: 0, paint: (_: string, text: string) => text }

const slots = [
  busy(1, 12, { kind: 'short' }),
  busy(2, 5, { timeoutAt: inSeconds(20) }),
  busy(3, 90, { timeoutAt: inSeconds(21) }),
  busy(4, 1),
  idle(5),
]
const fleet = fleetOf([workerOf(P1), workerOf(P2, { pools: [pool({ queue: 'files' })] })])

test('a task ends in time if its run timeout passes before the deadline, and a short one is awaited', () => {
  expect(forecastDrain(fleet, slots, { worker: P1 }, SOFT_TIMEOUT)).toEqual([
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
] as const)('the forecast follows the plan %j', (plan, expected) => {
  expect(forecastDrain(fleet, slots, { queue: 'cpu' }, plan)).toMatchObject([{ worker: P1, running: 4, ...expected }])
})

test('a task of unknown kind without a run timeout may be signalled', () => {
  const { kind: _, ...task } = { ...busy(1, 1).task, kind: 'x' }
  const unknown = [{ ...busy(1, 1), task: task as never }]
  expect(forecastDrain(fleet, unknown, { worker: P1 }, SOFT_TIMEOUT)).toMatchObject([{ endInTime: 0, maySignal: 1 }])
})

test('only live workers and pools of the target are included', () => {
  const silent = fleetOf([workerOf(P1, { alive: false }), workerOf(P2)])
  expect(forecastDrain(silent, slots, { queue: 'cpu' }, SOFT_TIMEOUT).map(({ worker }) => worker)).toEqual([P2])
  expect(forecastDrain(fleet, slots, { queue: 'files', worker: P1 }, SOFT_TIMEOUT)).toEqual([])
})

test('the text has a line for each worker and a conclusion', () => {
  const both = fleetOf([workerOf(P1), workerOf(P2)])
  expect(forecastLines(forecastDrain(both, slots, { queue: 'cpu' }, SOFT_TIMEOUT), 'cpu', layout)).toEqual([
    `${P1}  4 running tasks, longest 1m  1 will end within 20s; 2 may be signalled, then returned to the queue after 5s; waits up to 25s for 1 short task`,
    `${P2}   no running tasks`,
    'drain of cpu: 2 of 4 may be signalled and returned to the queue',
  ])
})

test.each([
  [[], SOFT_TIMEOUT, 'no running tasks'],
  [slots.slice(1, 2), SOFT_TIMEOUT, 'does not interrupt the 1 running task'],
  [slots.slice(0, 2), SOFT_TIMEOUT, 'does not interrupt the 2 running tasks, but waits for 1 short task'],
  [
    [busy(1, 1, { onInterrupt: 'fail' }), ...slots],
    SOFT_TIMEOUT,
    '2 of 5 may be signalled and returned to the queue, 1 of 5 may be signalled and end as dead',
  ],
  [slots, { mode: 'soft', timeoutMs: undefined } as const, 'waits for 4 running tasks, of which 1 has no run timeout'],
])('the conclusion names the worst that can happen: %#', (running, plan, conclusion) => {
  expect(forecastLines(forecastDrain(fleet, running, { worker: P1 }, plan), P1, layout).at(-1)).toBe(
    `drain of ${P1}: ${conclusion}`,
  )
  expect(forecastLines([], 'cpu', layout)).toEqual(['drain of cpu: no live workers'])
})
