// What a task counts for in its queue's totals from its add until its end.
//
// A task is charged when it is added, and again when an ended task returns to its queue. The charge is settled when the task ends, or
// when it is deleted before its end. The status index calls `charge` at these moments (status-index.ts), so that nothing else has to
// know them. Starts, retries and requeues cost nothing. To count something else until a task ends, add it here.
import { TASK_OVERHEAD_BYTES } from '@bullpen/engine/internal'

/**
 * A Lua function, `charge(home, job, sign)`: charges a task if `sign` is 1, and settles its charge if `sign` is -1. `home` is the
 * prefix of the queue's keys, and `job` is the task's key. The function needs the local variable `call`. The field `bytes` of the
 * totals is the sum of the charged tasks' stored strings, each plus a fixed overhead.
 */
export const CHARGE = `
  local function charge(home, job, sign)
    call('HINCRBY', home .. 'totals', 'bytes', sign * (call('HSTRLEN', job, 'data') + ${TASK_OVERHEAD_BYTES}))
  end`

/** A Lua expression: what `charge` would count for a task whose stored string is `data`, which need not be stored yet. */
export const bytesOf = (data: string): string => `#${data} + ${TASK_OVERHEAD_BYTES}`
