// What a drain would meet now: which of the tasks that run would end by themselves before its deadline.
import type { DrainMode, FleetView, ProcessView, WorkerView } from '@bullpen/contract'
import type { Target } from '../arguments/target.ts'

export interface DrainPlan {
  readonly mode: DrainMode
  /** Of soft_timeout, instead of each process's own. */
  readonly timeoutMs: number | undefined
}

export interface ProcessForecast {
  readonly process: string
  readonly running: number
  /** Of the task that has run longest; undefined when none runs. */
  readonly longestMs: number | undefined
  /** Undefined: the drain waits as long as it takes. */
  readonly deadlineMs: number | undefined
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

/** Of the live processes that the target names. */
export function forecast(
  { now, processes }: FleetView,
  workers: readonly WorkerView[],
  { queue, process }: Target,
  plan: DrainPlan,
): readonly ProcessForecast[] {
  const at = Date.parse(now)
  return processes
    .filter((each) => each.alive && (process === undefined || each.process === process))
    .filter((each) => queue === undefined || each.pools.some((pool) => pool.queue === queue))
    .map((each) => {
      const mine = workers.filter((worker) => worker.process === each.process)
      return ofProcess(
        each,
        mine.filter((worker) => queue === undefined || worker.queue === queue),
        at,
        plan,
      )
    })
}

function ofProcess(
  { process, graceMs, drainTimeoutMs }: ProcessView,
  workers: readonly WorkerView[],
  now: number,
  { mode, timeoutMs = drainTimeoutMs }: DrainPlan,
): ProcessForecast {
  const deadlineMs = mode === 'hard' ? 0 : mode === 'soft_timeout' ? timeoutMs : undefined
  const running = workers.filter(({ task }) => task !== undefined)
  const ends = running.map(({ task }) => {
    if (task?.kind === 'short') return deadlineMs === undefined ? 'in time' : 'wait'
    if (deadlineMs === undefined) return task?.endsBy === undefined ? 'open' : 'in time'
    if (task?.endsBy !== undefined && Date.parse(task.endsBy) <= now + deadlineMs) return 'in time'
    return task?.onInterrupt === 'fail' ? 'fail' : 'signal'
  })
  const count = (of: string): number => ends.filter((end) => end === of).length
  const ages = running.map(({ since }) => now - Date.parse(since))
  return {
    process,
    running: running.length,
    longestMs: ages.length === 0 ? undefined : Math.max(0, ...ages),
    deadlineMs,
    graceMs,
    endInTime: count('in time'),
    maySignal: count('signal'),
    mayFail: count('fail'),
    waitedFor: count('wait'),
    openEnded: count('open'),
  }
}
