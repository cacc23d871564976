// Drill `cancel`: cancels running long tasks one after the other, and measures the time until each handler gets its signal.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskId } from '@bullpen/contract'
import type { Drill } from '../drill.ts'
import { withDrillSetup } from '../environment/drill-setup.ts'
import type { System } from '../environment/fleet.ts'
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { machineMs } from '../ledger/effects.ts'
import { enqueueSteadily } from '../ledger/load.ts'
import { rank } from '../ledger/ranks.ts'
import type { Scale } from '../report.ts'

/** Cancellations are spread out at this rate, because in a burst they would wait for each other. */
const PLANS = {
  small: { processes: 2, concurrency: 50, cancelsPerSecond: 50 },
  full: { processes: 4, concurrency: 250, cancelsPerSecond: 100 },
} as const

const SIGNAL_P99_MS = 20
/** Long enough that the last task is still running when it is cancelled. */
const TASK_MS = 120_000
const RUNNING_WITHIN_MS = 30_000
const IDLE_WITHIN_MS = 120_000
const TICK_MS = 5

export const cancel: Drill = {
  name: 'cancel',
  target: (scale) => ({
    text: `${PLANS[scale].processes * PLANS[scale].concurrency} running tasks in ${PLANS[scale].processes} processes, ${PLANS[scale].cancelsPerSecond} cancels a second: request to signal p99 <= 20 ms; all cancelled, nothing restarted, metrics equal the ledger`,
    atMost: { signalP99Ms: SIGNAL_P99_MS, restarted: 0, effectsRepeated: 0, attemptsUsed: 0, miscounted: 0 },
  }),
  known: { signal: 'none: a task cannot be cancelled from another process' },
  comparable: false, // it cancels only within the worker's own process
  run: (scale, _seed, system) => cancelAll(PLANS[scale], system),
}

async function cancelAll(plan: (typeof PLANS)[Scale], system: System): Promise<Figures> {
  const { processes, concurrency, cancelsPerSecond } = plan
  const tasks = processes * concurrency
  return withDrillSetup(
    system,
    { pools: { drill: concurrency } },
    async ({ broker, fleet, effects, untilIdle, records }) => {
      await Promise.all(Array.from({ length: processes }, () => fleet.start()))
      const input = () => ({ ms: TASK_MS, listens: true })
      const accepted = await enqueueSteadily(broker, { tasks, ratePerSecond: tasks / 2, input })
      const deadline = performance.now() + RUNNING_WITHIN_MS
      while (effects().length < tasks && performance.now() < deadline) await sleep(100)

      const requestedAt = new Map<string, number>()
      const request = (id: string): Promise<unknown> => {
        requestedAt.set(id, machineMs())
        return broker.cancel(id as TaskId, { stoppable: true }).catch(() => {})
      }
      const startedAt = performance.now()
      const requests: Promise<unknown>[] = []
      while (requests.length < accepted.length) {
        const due = Math.ceil(((performance.now() - startedAt) / 1_000) * cancelsPerSecond)
        for (const id of accepted.slice(requests.length, due)) requests.push(request(id))
        await sleep(TICK_MS)
      }
      await Promise.all(requests)
      await untilIdle(IDLE_WITHIN_MS)

      const ledger = await records(accepted)
      const figures = figuresOf({ accepted, ...ledger, interruptions: [], exits: [] })
      const signals = new Map(
        ledger.effects.flatMap(({ what, id, machineMs }) => (what === 'signal' ? [[id, machineMs] as const] : [])),
      )
      const waits = accepted.map((id) => (signals.get(id) ?? Number.POSITIVE_INFINITY) - (requestedAt.get(id) ?? 0))
      return {
        ...figures,
        failed: [...ledger.ends.values()].filter(({ status }) => status !== 'cancelled').length,
        signalP50Ms: tenths(rank(waits, 0.5)),
        signalP99Ms: tenths(rank(waits, 0.99)),
      }
    },
  )
}

function tenths(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms * 10) / 10
}
