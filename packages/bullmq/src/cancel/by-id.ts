// Cancels one task by its id.
//
// The protocol:
//   1. One script decides by where the task is. A task that no worker has (waiting or delayed) ends at once.
//   2. For a task that a worker has, the script stores the request and who made it in the hash `cancelling`, and publishes
//      both on the queue's cancel channel. The caller is answered `cancelling`.
//   3. Every consumer of the queue is subscribed (subscriber.ts). The one that runs the task aborts its attempt. A consumer
//      that does not know the task remembers the id: the task may be on its way to it.
//   4. The maintenance of every process repeats requests that are still stored, every 2 s: for a worker that was cut off or
//      restarting when the id was published. The script removes the request when the task has ended.
//
// A short task can't be stopped once it runs: `stoppable` is false, and nothing is stored for it.
import type { TaskId } from '@bullpen/contract'
import type { CancelAnswer } from '@bullpen/contract/internal'
import { endWithoutStart, MAX_ATTEMPT_RECORDS } from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import { describeEnd } from '../codec.ts'
import { TAKE_OUT } from '../internals/places.ts'
import type { QueueKeys } from '../keys.ts'

/**
 * KEYS: job, wait, prioritized, delayed, completed, failed, events, expiries, cancelling. ARGV: id, now in ms, '1' if a worker
 * can stop the task, the reason, the attempt record as JSON without its braces and attempt, the cancel channel, how many
 * stacks are kept, who asks ('' if unknown). Answers `cancelled`, `cancelling`, `not_cancellable`, `already_ended` or `not_found`.
 */
const CANCEL = `${TAKE_OUT}
local id = ARGV[1]
local function settled(answer)
  redis.call('HDEL', KEYS[9], id)
  return answer
end
if redis.call('EXISTS', KEYS[1]) == 0 then return settled('not_found') end
if redis.call('ZSCORE', KEYS[5], id) or redis.call('ZSCORE', KEYS[6], id) then return settled('already_ended') end
if not take_out(id, KEYS[2], KEYS[3], KEYS[4]) then
  if ARGV[3] ~= '1' then return 'not_cancellable' end
  redis.call('HSETNX', KEYS[9], id, ARGV[8])
  redis.call('PUBLISH', ARGV[6], id .. ' ' .. ARGV[8])
  return 'cancelling'
end
local stored = redis.call('HMGET', KEYS[1], 'atm', 'stacktrace')
local stacks = stored[2] and cjson.decode(stored[2]) or {}
while #stacks >= tonumber(ARGV[7]) do table.remove(stacks, 1) end
local attempt = tonumber(stored[1] or '0') + 1
stacks[#stacks + 1] = '{"attempt":' .. attempt .. ',' .. ARGV[5] .. '}\\n' .. ARGV[4]
redis.call('HSET', KEYS[1], 'finishedOn', ARGV[2], 'failedReason', ARGV[4], 'stacktrace', cjson.encode(stacks))
redis.call('ZADD', KEYS[6], ARGV[2], id)
redis.call('ZREM', KEYS[8], id)
redis.call('XADD', KEYS[7], '*', 'event', 'failed', 'jobId', id, 'failedReason', ARGV[4], 'prev', 'waiting')
return settled('cancelled')
`

export interface CancelRequest {
  readonly id: TaskId
  /** Whether a worker that runs the task can stop it. */
  readonly stoppable: boolean
  /** Milliseconds since 1970. */
  readonly now: number
  /** Who asks, for the attempt record; '' if unknown. */
  readonly by: string
  /** The process that ends the task if no worker has it, for the attempt record. */
  readonly process: string
}

/** Atomic and idempotent. One round trip. */
export async function cancelById(
  redis: Redis,
  keys: QueueKeys,
  { id, stoppable, now, by, process }: CancelRequest,
): Promise<CancelAnswer> {
  const record = endWithoutStart('cancelled', { attempt: 1, process, now, by: by === '' ? undefined : by })
  const { attempt: _, ...stored } = record
  const { wait, prioritized, delayed, completed, failed, events, expiries, cancelling } = keys
  const names = [keys.job(id), wait, prioritized, delayed, completed, failed, events, expiries, cancelling]
  const answer = await redis.eval(
    CANCEL,
    names.length,
    ...names,
    id,
    now,
    stoppable ? 1 : 0,
    describeEnd(record),
    JSON.stringify(stored).slice(1, -1),
    keys.cancelChannel,
    MAX_ATTEMPT_RECORDS,
    by,
  )
  return answer as CancelAnswer
}

/** Repeats the requests whose tasks have not ended. One round trip, and one more for each of them. */
export async function repeatCancels(redis: Redis, keys: QueueKeys, now: number, process: string): Promise<void> {
  for (const [id, by] of Object.entries(await redis.hgetall(keys.cancelling))) {
    await cancelById(redis, keys, { id: id as TaskId, stoppable: true, now, by, process })
  }
}
