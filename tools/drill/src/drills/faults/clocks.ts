// Drill `clocks`: runs tasks that are due at a certain time on workers whose clocks are off by an hour.
import { readTaskId } from '@bullpen/contract/internal'
import type { Drill } from '../../drill.ts'
import { withDrillSetup } from '../../environment/drill-setup.ts'
import type { System } from '../../environment/fleet.ts'
import type { Figures } from '../../figures/figures.ts'
import { figuresOf } from '../../figures/tasks.ts'
import type { Effect } from '../../ledger/effects.ts'
import { enqueueSteadily, type Load } from '../../ledger/load.ts'
import type { Scale } from '../../report.ts'

const HOUR_MS = 3_600_000
const DUE_MS = 2_000
const DUE_ERROR_MS = 1_000
/** Redis's time is known only to within a few milliseconds, and the ledger has a resolution of one millisecond. */
const EARLY_MS = 50
const IDLE_WITHIN_MS = 120_000
const AGAIN = [undefined, { by: 'retry', afterMs: DUE_MS }, { by: 'snooze', afterMs: DUE_MS }] as const

const PLANS = {
  small: { clocks: [HOUR_MS, -HOUR_MS], concurrency: 20, tasks: 90, ratePerSecond: 30 },
  full: { clocks: [HOUR_MS, -HOUR_MS, 600_000, 0], concurrency: 50, tasks: 6_000, ratePerSecond: 100 },
} as const

export const clocks: Drill = {
  name: 'clocks',
  target: () => ({
    text: 'clocks off by 1 h either way: delays, retries and snoozes of 2 s start <= 1 s from when they are due, none early; no timeout of 10 min passes; the log reports every skew; metrics equal the ledger',
    atMost: { dueErrorMaxMs: DUE_ERROR_MS, startedEarly: 0, skewsUnreported: 0, effectsRepeated: 0, miscounted: 0 },
  }),
  known: { dueErrorMaxMs: HOUR_MS },
  comparable: false, // a task that waits for a clock that is an hour behind waits for an hour
  run: (scale, _seed, system) => keepTime(PLANS[scale], system),
}

async function keepTime(
  { clocks: off, concurrency, ...plan }: (typeof PLANS)[Scale],
  system: System,
): Promise<Figures> {
  const load: Load = {
    ...plan,
    // One third of the tasks complete in the first attempt, one third are retried, and one third are snoozed.
    input: (n) => ({ ms: 0, listens: false, again: AGAIN[n % AGAIN.length] }),
    call: { delay: `${DUE_MS}ms`, queueTimeout: '10m', totalTimeout: '15m' },
  }
  return withDrillSetup(
    system,
    { pools: { drill: concurrency } },
    async ({ broker, fleet, untilIdle, logLines, records }) => {
      await Promise.all(off.map((clockOffMs) => fleet.start({}, { clockOffMs })))
      const accepted = await enqueueSteadily(broker, load)
      await untilIdle(IDLE_WITHIN_MS)
      const { effects, ...rest } = await records(accepted)
      const late = latenesses(effects)
      const reported = logLines().map(({ skewMs }) => Number(skewMs))
      return {
        ...figuresOf({ accepted, effects, ...rest, interruptions: [], exits: [] }),
        dueErrorMaxMs: late.length === 0 ? undefined : Math.max(...late.map(Math.abs)),
        startedEarly: late.filter((ms) => ms < -EARLY_MS).length,
        skewsUnreported: off.filter((ms) => ms !== 0 && !reported.some((skew) => Math.abs(skew - ms) < DUE_ERROR_MS))
          .length,
      }
    },
  )
}

/** Returns how late each start was. A task is due a certain time after it was enqueued, or after its previous start. */
function latenesses(effects: readonly Effect[]): readonly number[] {
  const last = new Map<string, number>()
  return effects
    .filter(({ what }) => what === 'start')
    .map(({ id, at }) => {
      const before = last.get(id) ?? readTaskId(id)?.createdAt ?? Number.NaN
      last.set(id, at)
      return at - (before + DUE_MS)
    })
}
