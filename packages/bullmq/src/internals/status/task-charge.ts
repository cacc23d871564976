// Defines what a task adds to its queue's totals from its enqueue until its end.
//
// A task is charged for when it is added, and again if it returns to its queue after it has ended. The charge is refunded when
// the task ends, or when it is deleted before its end. The status index calls `charge` at these moments (status-index.ts), so
// that no other code has to know them. Starts, retries and requeues do not change the charge. To count anything else until a task
// ends, add it here.
import { TASK_OVERHEAD_BYTES } from '@bullpen/engine/internal'

/**
 * A Lua function, `charge(home, job, sign)`, which charges for a task if `sign` is 1, and refunds its charge if `sign` is -1.
 * `home` is the prefix of the queue's keys, and `job` is the task's key. The function needs the local variable `call`. The field
 * `bytes` of the totals is the sum of the sizes of the charged tasks' stored strings, plus a fixed overhead for each task. If a
 * task is counted for an API key, the task's field `apiKey` contains the key's name, and the hash `api-key-tasks` counts that
 * key's charged tasks.
 */
export const CHARGE = `
  local function charge(home, job, sign)
    call('HINCRBY', home .. 'totals', 'bytes', sign * (call('HSTRLEN', job, 'data') + ${TASK_OVERHEAD_BYTES}))
    local name = call('HGET', job, 'apiKey')
    if name and call('HINCRBY', home .. 'api-key-tasks', name, sign) <= 0 then call('HDEL', home .. 'api-key-tasks', name) end
  end`

/**
 * Returns a Lua expression for the bytes that `charge` counts for a task with the stored string `data`. The task does not have to
 * be stored yet.
 */
export const bytesOf = (data: string): string => `#${data} + ${TASK_OVERHEAD_BYTES}`
