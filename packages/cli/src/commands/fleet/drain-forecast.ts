// Forecasts a drain's effect: which running tasks will end before its deadline, and what will happen to the others.
import type { DrainMode, FleetView, SlotView, WorkerView } from '@bullpen/contract'
import type { Target } from '../../arguments/target.ts'

export interface DrainPlan {
  readonly mode: DrainMode
  /** The timeout of soft_timeout. If undefined, each worker uses its own drain timeout. */
  readonly timeoutMs: number | undefined
}

export interface WorkerForecast {
  readonly worker: string
  readonly running: number
  /** How long the oldest running task has been running, or undefined if no task is running. */
  readonly slowestTaskMs: number | undefined
  /** The time until running tasks are signalled, or undefined if they never are. */
  readonly totalMs: number | undefined
  readonly graceMs: number
  /** Tasks whose run timeout expires before the deadline, or, if there is no deadline, all tasks with a run timeout. */
  readonly endInTime: number
  /** Tasks that may still be running at the deadline. They are signalled, then returned to the queue after the grace period. */
  readonly maySignal: number
  /** Like `maySignal`, but for tasks whose definition sets `onInterrupt: 'fail'`. These tasks would end as dead. */
  readonly mayFail: number
  /** Short tasks. They cannot be signalled, so the drain waits for them until the grace period ends and then abandons them. */
  readonly waitedFor: number
  /** Tasks that neither the drain nor a run timeout will end. */
  readonly openEnded: number
}

/** Returns a forecast for each of the target's live workers. */
export function forecastDrain(
  { now, workers }: FleetView,
  slots: readonly SlotView[],
  { queue, worker }: Target,
  plan: DrainPlan,
): readonly WorkerForecast[] {
  const nowMs = Date.parse(now)
  return workers
    .filter((each) => each.alive && (worker === undefined || each.worker === worker))
    .filter((each) => queue === undefined || each.pools.some((pool) => pool.queue === queue))
    .map((each) => {
      const affected = slots
        .filter((slot) => slot.worker === each.worker)
        .filter((slot) => queue === undefined || slot.queue === queue)
      return forecastWorker(each, affected, nowMs, plan)
    })
}

type Fate = 'in time' | 'signal' | 'fail' | 'wait' | 'open'

function forecastWorker(
  { worker, pools, ...usual }: WorkerView,
  slots: readonly SlotView[],
  nowMs: number,
  { mode, timeoutMs }: DrainPlan,
): WorkerForecast {
  const settingsOf = (queue: string) => pools.find((pool) => pool.queue === queue)?.drainSettings
  const totalOf = (queue: string): number | undefined => {
    if (mode === 'hard') return 0
    return mode === 'soft_timeout' ? (timeoutMs ?? settingsOf(queue)?.timeoutMs ?? usual.drainTimeoutMs) : undefined
  }
  const running = slots.filter(({ task }) => task !== undefined)
  const fates = running.map(({ task, queue }): Fate => {
    const totalMs = totalOf(queue)
    if (task?.kind === 'short') return totalMs === undefined ? 'in time' : 'wait'
    if (totalMs === undefined) return task?.timeoutAt === undefined ? 'open' : 'in time'
    if (task?.timeoutAt !== undefined && Date.parse(task.timeoutAt) <= nowMs + totalMs) return 'in time'
    return task?.onInterrupt === 'fail' ? 'fail' : 'signal'
  })
  const countOf = (fate: Fate): number => fates.filter((each) => each === fate).length
  const ages = running.map(({ since }) => nowMs - Date.parse(since))
  return {
    worker,
    running: running.length,
    slowestTaskMs: ages.length === 0 ? undefined : Math.max(0, ...ages),
    totalMs: longest(running.map(({ queue }) => totalOf(queue))) ?? totalOf(''),
    graceMs: longest(running.map(({ queue }) => settingsOf(queue)?.graceMs ?? usual.graceMs)) ?? usual.graceMs,
    endInTime: countOf('in time'),
    maySignal: countOf('signal'),
    mayFail: countOf('fail'),
    waitedFor: countOf('wait'),
    openEnded: countOf('open'),
  }
}

function longest(times: readonly (number | undefined)[]): number | undefined {
  const known = times.filter((ms) => ms !== undefined)
  return known.length === 0 ? undefined : Math.max(...known)
}
