// The time limits of one attempt: the caller's, else the definition's, else the pool's.
import { contradictionIn, type TaskDefinition } from '@bullpen/contract'

type Ms = number | 'none'

/** Milliseconds; `'none'` is no limit, said by somebody. */
export interface Limits {
  readonly timeoutMs: Ms
  readonly heartbeatMs: Ms
  /** From ready to the first start. */
  readonly queueMs: Ms
  /** From the enqueueing to the end of the last attempt. */
  readonly deadlineMs: Ms
  /** From the signal to the freed slot. */
  readonly graceMs: Ms
}

export const DEFAULT_LIMITS: Limits = Object.freeze({
  timeoutMs: 300_000,
  heartbeatMs: 'none',
  queueMs: 'none',
  deadlineMs: 'none',
  graceMs: 5_000,
})

/** What a caller said for one task. */
export type CallLimits = { readonly [L in Exclude<keyof Limits, 'graceMs'>]?: Ms | undefined }

export function limitsOf(definition: TaskDefinition, pool: Limits, call: CallLimits | undefined): Limits {
  const said = {
    timeoutMs: call?.timeoutMs ?? definition.timeoutMs,
    heartbeatMs: call?.heartbeatMs ?? definition.heartbeatMs,
    queueMs: call?.queueMs ?? definition.queueMs,
    deadlineMs: call?.deadlineMs ?? definition.deadlineMs,
  }
  return {
    timeoutMs: inherited(said, 'timeoutMs', pool),
    heartbeatMs: inherited(said, 'heartbeatMs', pool),
    queueMs: inherited(said, 'queueMs', pool),
    deadlineMs: inherited(said, 'deadlineMs', pool),
    graceMs: definition.graceMs ?? pool.graceMs,
  }
}

/** A default that contradicts what was said for this task was not meant for it: what was said holds. */
function inherited(said: CallLimits, limit: keyof CallLimits, pool: Limits): Ms {
  const own = said[limit]
  if (own !== undefined) return own
  return contradictionIn({ ...said, [limit]: pool[limit] }) === undefined ? pool[limit] : 'none'
}
