// The time limits of one attempt: the caller's, else the definition's, else the pool's.
import type { TaskDefinition } from '@bullpen/contract'

/** A pool's defaults. Milliseconds; `'none'` is no limit, said by somebody. */
export interface Limits {
  readonly timeoutMs: number | 'none'
  /** From the signal to the freed slot. */
  readonly graceMs: number | 'none'
}

/** What holds for one attempt. */
export interface AttemptLimits extends Limits {
  readonly heartbeatMs: number | 'none'
  /** Milliseconds since 1970. */
  readonly deadlineAt: number | 'none'
}

/** What a caller said for one task. */
export interface CallLimits {
  readonly timeoutMs: number | 'none' | undefined
  readonly deadlineMs: number | 'none' | undefined
}

export function limitsOf(
  definition: TaskDefinition,
  pool: Limits,
  call: CallLimits,
  enqueuedAt: number,
): AttemptLimits {
  const deadlineMs = call.deadlineMs ?? definition.deadlineMs ?? 'none'
  return {
    timeoutMs: call.timeoutMs ?? definition.timeoutMs ?? pool.timeoutMs,
    heartbeatMs: definition.heartbeatMs ?? 'none',
    deadlineAt: deadlineMs === 'none' ? 'none' : enqueuedAt + deadlineMs,
    graceMs: definition.graceMs ?? pool.graceMs,
  }
}
