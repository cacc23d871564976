// Reads the head of a queue: whether the queue is paused, and the times from which the age of the task that starts next is computed.
import { NEXT_TASK } from '../../internals/turns/next-task.ts'
import { defineScript } from '../script.ts'

export interface HeadFields {
  readonly paused: string | undefined
  /** Undefined if no task is waiting. */
  readonly timestamp: string | undefined
  readonly options: string | undefined
  readonly lastStart: string | undefined
  readonly retries: string | undefined
}

/**
 * - KEYS: the settings of the queue.
 * - ARGV: the prefix of the queue's keys.
 *
 * O(1). Everything is read at the same moment. Otherwise, if workers take tasks quickly, the task would have started before its times
 * are read, and would seem to have been ready only since then.
 */
export const readHead = defineScript({
  name: 'read-head',
  kind: 'reads',
  keys: ['meta'],
  args: ['base'],
  lua: `${NEXT_TASK}
local paused = redis.call('HGET', meta, 'paused')
local id = next_task(base)
if not id then return { paused } end
return { paused, unpack(redis.call('HMGET', base .. id, 'timestamp', 'opts', 'processedOn', 'retries')) }
`,
  answer(reply): HeadFields {
    const [paused, timestamp, options, lastStart, retries] = (reply as (string | null)[]).map(
      (value) => value ?? undefined,
    )
    return { paused, timestamp, options, lastStart, retries }
  },
})
