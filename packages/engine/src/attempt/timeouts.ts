// The time limits of one attempt: the caller's, else the definition's, else the pool's.
import type { TaskDefinition } from '@bullpen/contract'
import { contradictionIn } from '@bullpen/contract/internal'

type Ms = number | 'none'

/** Milliseconds; `'none'` is no limit, said by somebody. */
export interface Timeouts {
  readonly timeoutMs: Ms
  readonly heartbeatMs: Ms
  /** From ready to the first start. */
  readonly queueMs: Ms
  /** From the enqueueing to the end of the last attempt. */
  readonly totalMs: Ms
  /** From the signal to the freed slot. */
  readonly graceMs: Ms
}

export const DEFAULT_TIMEOUTS: Timeouts = Object.freeze({
  timeoutMs: 300_000,
  heartbeatMs: 'none',
  queueMs: 'none',
  totalMs: 'none',
  graceMs: 5_000,
})

/** What a caller said for one task. */
export type CallTimeouts = { readonly [L in Exclude<keyof Timeouts, 'graceMs'>]?: Ms | undefined }

export function resolveTimeouts(definition: TaskDefinition, pool: Timeouts, call: CallTimeouts | undefined): Timeouts {
  const said = {
    timeoutMs: call?.timeoutMs ?? definition.timeoutMs,
    heartbeatMs: call?.heartbeatMs ?? definition.heartbeatMs,
    queueMs: call?.queueMs ?? definition.queueMs,
    totalMs: call?.totalMs ?? definition.totalMs,
  }
  return {
    timeoutMs: inherited(said, 'timeoutMs', pool),
    heartbeatMs: inherited(said, 'heartbeatMs', pool),
    queueMs: inherited(said, 'queueMs', pool),
    totalMs: inherited(said, 'totalMs', pool),
    graceMs: definition.graceMs ?? pool.graceMs,
  }
}

/** A default that contradicts what was said for this task was not meant for it: what was said holds. */
function inherited(said: CallTimeouts, limit: keyof CallTimeouts, pool: Timeouts): Ms {
  const own = said[limit]
  if (own !== undefined) return own
  return contradictionIn({ ...said, [limit]: pool[limit] }) === undefined ? pool[limit] : 'none'
}
