// Computes the figures of the drill `schedule` from the tasks that the schedule has enqueued.
import type { Figures } from '../figures/figures.ts'
import type { StoredTick } from './stored-ticks.ts'

export interface ScheduleLedger {
  /** The first tick, and a time after which a tick may not have been handled, in ms since 1970. */
  readonly firstTick: number
  readonly lastTick: number
  readonly everyMs: number
  readonly stored: readonly StoredTick[]
  readonly notTakenOver: number
  readonly skewedNeverLed: number
}

export function scheduleFigures(ledger: ScheduleLedger): Figures {
  const { firstTick, lastTick, everyMs, stored, notTakenOver, skewedNeverLed } = ledger
  const expected = Array.from(
    { length: Math.max(0, Math.floor((lastTick - firstTick) / everyMs) + 1) },
    (_, i) => firstTick + i * everyMs,
  )
  const perTick = Map.groupBy(stored, ({ tick }) => tick)
  const late = stored.map(({ tick, enqueuedAt }) => enqueuedAt - tick).toSorted((a, b) => a - b)
  return {
    accepted: stored.length,
    ...{ lost: 0, duplicated: 0, eventsMissed: 0, failed: 0, effectsRepeated: 0, restarted: 0, attemptsUsed: 0 },
    ...{ interrupted: 0, recoveryP99Ms: undefined, exitSlowestMs: undefined, exitsNotZero: 0 },
    ticks: expected.length,
    ticksMissed: expected.filter((tick) => !perTick.has(tick)).length,
    ticksDoubled: [...perTick.values()].filter((tasks) => tasks.length > 1).length,
    ticksEarly: late.filter((ms) => ms < 0).length,
    tickLateP50Ms: late[Math.floor(late.length / 2)],
    tickLateP99Ms: late[Math.max(0, Math.ceil(late.length * 0.99) - 1)],
    notTakenOver,
    skewedNeverLed,
  }
}
