import { expect, it } from 'vitest'
import { scheduleFigures } from './schedule-figures.ts'

const on = (tick: number, lateMs = 5) => ({ tick, enqueuedAt: tick + lateMs })
const common = { firstTick: 1_000, lastTick: 4_500, everyMs: 1_000, notTakenOver: 0, skewedNeverLed: 0 }

it('a tick without a task is missed, and one with two tasks is doubled', () => {
  const stored = [on(1_000), on(2_000, 900), on(2_000), on(4_000, -1)]
  expect(scheduleFigures({ ...common, stored })).toMatchObject({
    accepted: 4,
    ticks: 4,
    ticksMissed: 1,
    ticksDoubled: 1,
    ticksEarly: 1,
    tickLateP99Ms: 900,
  })
})

it('a tick after the last one that counts is not expected', () => {
  const stored = [1_000, 2_000, 3_000, 4_000, 5_000].map((tick) => on(tick))
  expect(scheduleFigures({ ...common, stored })).toMatchObject({ ticks: 4, ticksMissed: 0, ticksDoubled: 0 })
})
