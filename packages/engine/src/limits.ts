// The time limits of one attempt: the caller's, else the definition's, else the pool's.
import type { TaskDefinition } from '@bullpen/contract'

/** Milliseconds; `'none'` is no limit, said by somebody. */
export interface Limits {
  readonly timeoutMs: number | 'none'
  /** From the signal to the freed slot. */
  readonly graceMs: number | 'none'
}

export function limitsOf(definition: TaskDefinition, pool: Limits, callTimeoutMs: number | 'none' | undefined): Limits {
  return {
    timeoutMs: callTimeoutMs ?? definition.timeoutMs ?? pool.timeoutMs,
    graceMs: definition.graceMs ?? pool.graceMs,
  }
}
