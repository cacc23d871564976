// The timeouts of one attempt: which ones hold for it, when the next one passes, and which one has passed.
//
// Four timeouts can end an attempt. The queue timeout and the total timeout are checked before the handler starts; the run
// timeout, the heartbeat timeout and the total timeout while it runs. Everything here is decided from times that are passed in;
// the timer belongs to the interruptible run.
import type { EndReason, TaskDefinition } from '@bullpen/contract'
import { contradictionIn } from '@bullpen/contract/internal'

type Ms = number | 'none'

export interface Timeouts {
  readonly timeoutMs: Ms
  readonly heartbeatMs: Ms
  /** From when the task is ready until its first attempt starts. */
  readonly queueMs: Ms
  /** From the enqueueing until the last attempt ends. */
  readonly totalMs: Ms
  /** From the signal until the slot is freed. */
  readonly graceMs: Ms
}

export const DEFAULT_TIMEOUTS: Timeouts = Object.freeze({
  timeoutMs: 300_000,
  heartbeatMs: 'none',
  queueMs: 'none',
  totalMs: 'none',
  graceMs: 5_000,
})

/** The timeouts that a caller set for one task. */
export type CallTimeouts = { readonly [L in Exclude<keyof Timeouts, 'graceMs'>]?: Ms | undefined }

/** The timeouts of one attempt: the caller's, or else the definition's, or else the pool's. */
export function resolveTimeouts(definition: TaskDefinition, pool: Timeouts, call: CallTimeouts | undefined): Timeouts {
  const own = {
    timeoutMs: call?.timeoutMs ?? definition.timeoutMs,
    heartbeatMs: call?.heartbeatMs ?? definition.heartbeatMs,
    queueMs: call?.queueMs ?? definition.queueMs,
    totalMs: call?.totalMs ?? definition.totalMs,
  }
  return {
    timeoutMs: inherited(own, 'timeoutMs', pool),
    heartbeatMs: inherited(own, 'heartbeatMs', pool),
    queueMs: inherited(own, 'queueMs', pool),
    totalMs: inherited(own, 'totalMs', pool),
    graceMs: definition.graceMs ?? pool.graceMs,
  }
}

/** A pool's default that contradicts what was set for this task does not hold for it. */
function inherited(own: CallTimeouts, timeout: keyof CallTimeouts, pool: Timeouts): Ms {
  const set = own[timeout]
  if (set !== undefined) return set
  return contradictionIn({ ...own, [timeout]: pool[timeout] }) === undefined ? pool[timeout] : 'none'
}

/** When the task's total timeout passes, in ms since 1970. The only place where that is computed. */
export function totalTimeoutAt(enqueuedAt: number, { totalMs }: Timeouts): Ms {
  return totalMs === 'none' ? 'none' : enqueuedAt + totalMs
}

/** A timeout that has passed, and how long it was. */
export interface PassedTimeout {
  readonly reason: EndReason<'TERMINATED_TIMEOUT'>
  readonly limitMs: number
}

/** Times in ms since 1970. */
interface BeforeStart {
  readonly timeouts: Timeouts
  readonly totalTimeoutAt: Ms
  /** Undefined unless this is the first attempt. */
  readonly readyAt: number | undefined
}

/** The timeout that passed before the handler was started. */
export function timeoutBeforeStart(task: BeforeStart, now: number): PassedTimeout | undefined {
  const { queueMs, totalMs } = task.timeouts
  if (queueMs !== 'none' && task.readyAt !== undefined && now >= task.readyAt + queueMs) {
    return { reason: 'queue_timeout', limitMs: queueMs }
  }
  if (totalMs !== 'none' && task.totalTimeoutAt !== 'none' && now >= task.totalTimeoutAt) {
    return { reason: 'total_timeout', limitMs: totalMs }
  }
  return undefined
}

/** A handler that runs. All times are of one clock, in ms. */
export interface RunningTimeouts {
  readonly timeouts: Timeouts
  readonly startedAt: number
  /** The last heartbeat; the start is one. */
  readonly lastHeartbeatAt: number
  readonly totalTimeoutAt: Ms
}

/** When the next timeout passes; Infinity if there is none. */
export function nextTimeoutAt({ timeouts, startedAt, lastHeartbeatAt, totalTimeoutAt }: RunningTimeouts): number {
  return Math.min(
    after(startedAt, timeouts.timeoutMs),
    after(lastHeartbeatAt, timeouts.heartbeatMs),
    totalTimeoutAt === 'none' ? Number.POSITIVE_INFINITY : totalTimeoutAt,
  )
}

/** The first timeout that has passed by now. */
export function passedTimeout(running: RunningTimeouts, now: number): PassedTimeout | undefined {
  const at = nextTimeoutAt(running)
  if (now < at) return undefined
  const { timeoutMs, heartbeatMs, totalMs } = running.timeouts
  if (timeoutMs !== 'none' && running.startedAt + timeoutMs === at) {
    return { reason: 'run_timeout', limitMs: timeoutMs }
  }
  if (heartbeatMs !== 'none' && running.lastHeartbeatAt + heartbeatMs === at) {
    return { reason: 'heartbeat_timeout', limitMs: heartbeatMs }
  }
  return totalMs === 'none' ? undefined : { reason: 'total_timeout', limitMs: totalMs }
}

function after(from: number, ms: Ms): number {
  return ms === 'none' ? Number.POSITIVE_INFINITY : from + ms
}
