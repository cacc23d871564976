// What a drain would meet now: which of the tasks that run would end by themselves before its deadline.
import type { DrainMode, FleetView, SlotView, WorkerView } from '@bullpen/contract'
import type { Target } from '../arguments/target.ts'

export interface DrainPlan {
  readonly mode: DrainMode
  /** Of soft_timeout, instead of each worker's own. */
  readonly timeoutMs: number | undefined
}

export interface ProcessForecast {
  readonly worker: string
  readonly running: number
  /** Of the task that has run longest; undefined when none runs. */
  readonly slowestTaskMs: number | undefined
  /** Undefined: the drain waits as long as it takes. */
  readonly totalMs: number | undefined
  readonly graceMs: number
  /** Their run timeout passes before the deadline; without one all that ends by itself. */
  readonly endInTime: number
  /** They have the grace after it, and are handed back. */
  readonly maySignal: number
  /** As those, but their definition lets them fail for it. */
  readonly mayFail: number
  /** Short: they can't be interrupted. They are waited for until the grace is over, and abandoned then. */
  readonly waitedFor: number
  /** No deadline, and no run timeout of their own: nothing ends them. */
  readonly openEnded: number
}

/** Of the live workers that the target names. */
export function forecast(
  { now, workers }: FleetView,
  slots: readonly SlotView[],
  { queue, worker }: Target,
  plan: DrainPlan,
): readonly ProcessForecast[] {
  const at = Date.parse(now)
  return workers
    .filter((each) => each.alive && (worker === undefined || each.worker === worker))
    .filter((each) => queue === undefined || each.pools.some((pool) => pool.queue === queue))
    .map((each) => {
      const mine = slots.filter((slot) => slot.worker === each.worker)
      return ofProcess(
        each,
        mine.filter((slot) => queue === undefined || slot.queue === queue),
        at,
        plan,
      )
    })
}

function ofProcess(
  { worker, graceMs, drainTimeoutMs }: WorkerView,
  slots: readonly SlotView[],
  now: number,
  { mode, timeoutMs = drainTimeoutMs }: DrainPlan,
): ProcessForecast {
  const totalMs = mode === 'hard' ? 0 : mode === 'soft_timeout' ? timeoutMs : undefined
  const running = slots.filter(({ task }) => task !== undefined)
  const ends = running.map(({ task }) => {
    if (task?.kind === 'short') return totalMs === undefined ? 'in time' : 'wait'
    if (totalMs === undefined) return task?.timeoutAt === undefined ? 'open' : 'in time'
    if (task?.timeoutAt !== undefined && Date.parse(task.timeoutAt) <= now + totalMs) return 'in time'
    return task?.onInterrupt === 'fail' ? 'fail' : 'signal'
  })
  const count = (of: string): number => ends.filter((end) => end === of).length
  const ages = running.map(({ since }) => now - Date.parse(since))
  return {
    worker,
    running: running.length,
    slowestTaskMs: ages.length === 0 ? undefined : Math.max(0, ...ages),
    totalMs,
    graceMs,
    endInTime: count('in time'),
    maySignal: count('signal'),
    mayFail: count('fail'),
    waitedFor: count('wait'),
    openEnded: count('open'),
  }
}
