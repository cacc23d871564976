// Defines what a task adds to its queue's totals from its enqueue until its end.
//
// A task is charged for when it is added, and again if it returns to its queue after it has ended. The charge is refunded when
// the task ends, or when it is deleted before its end. The status index calls `charge` at these moments (status-index.ts), so
// that no other code has to know them. Starts, retries and requeues do not change the charge. To count anything else until a task
// ends, add it here.
import { TASK_OVERHEAD_BYTES } from '@bullpen/engine/internal'

/** The first character of the field `atEnd` of a task that is only counted for an API key. */
export const COUNTED_MARK = '-'
/** The first character of the field `atEnd` of a task whose end may add to the outbox (../../outbox/outbox-steps.ts). */
export const FOLLOWED_MARK = '+'

/**
 * A Lua function, `charge(home, job, sign)`, which charges for a task if `sign` is 1, and refunds its charge if `sign` is -1.
 * `home` is the prefix of the queue's keys, and `job` is the task's key. The function needs the local variable `call`. The field
 * `bytes` of the totals is the sum of the sizes of the charged tasks' stored strings, plus a fixed overhead for each task.
 *
 * The task's field `atEnd` says what its end implies: a mark, and then the name of the API key for which the task is counted, if
 * any. The hash `api-key-tasks` counts each key's charged tasks. Most tasks have no such field. Returns whether the end of the task
 * may add to the outbox.
 */
export const CHARGE = `
  local function charge(home, job, sign)
    local at_end = call('HGET', job, 'atEnd')
    local bytes, is_followed = call('HSTRLEN', job, 'data') + ${TASK_OVERHEAD_BYTES}, false
    if at_end then
      is_followed = string.sub(at_end, 1, 1) == '${FOLLOWED_MARK}'
      if is_followed then bytes = bytes + call('HSTRLEN', job, 'followUps') + call('HSTRLEN', job, 'compensations') end
      local name = string.sub(at_end, 2)
      if name ~= '' and call('HINCRBY', home .. 'api-key-tasks', name, sign) <= 0 then
        call('HDEL', home .. 'api-key-tasks', name)
      end
    end
    call('HINCRBY', home .. 'totals', 'bytes', sign * bytes)
    return is_followed
  end`

/**
 * Returns a Lua expression for the bytes that `charge` counts for a task with these stored strings, which are expressions, too. The task
 * does not have to be stored yet.
 */
export const bytesOf = (...strings: readonly string[]): string =>
  [...strings.map((each) => `#${each}`), TASK_OVERHEAD_BYTES].join(' + ')
