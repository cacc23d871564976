// Reads the head of a queue: whether the queue is paused, and the times from which the age of the task that starts next is computed.
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
 * - KEYS: the names below.
 * - ARGV: the prefix of jobs.
 *
 * O(1). Everything is read at the same moment. Otherwise, if workers take tasks quickly, the task would have started before its times
 * are read, and would seem to have been ready only since then.
 */
export const readHead = defineScript({
  name: 'read-head',
  kind: 'reads',
  keys: ['meta', 'wait', 'prioritized'],
  args: ['prefix'],
  lua: `
local paused = redis.call('HGET', meta, 'paused')
-- BullMQ starts the tasks without a priority first.
local id = redis.call('LINDEX', wait, -1) or redis.call('ZRANGE', prioritized, 0, 0)[1]
if not id then return { paused } end
return { paused, unpack(redis.call('HMGET', prefix .. id, 'timestamp', 'opts', 'processedOn', 'retries')) }
`,
  answer(reply): HeadFields {
    const [paused, timestamp, options, lastStart, retries] = (reply as (string | null)[]).map(
      (value) => value ?? undefined,
    )
    return { paused, timestamp, options, lastStart, retries }
  },
})
