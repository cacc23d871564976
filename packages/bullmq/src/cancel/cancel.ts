// Cancelling a task, whatever it is doing: one script decides, and what runs is told by a message.
import type { TaskId } from '@bullpen/contract'
import type { CancelAnswer } from '@bullpen/contract/internal'
import { endWithoutStart, MAX_ATTEMPT_RECORDS } from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import { describeEnd } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'

/**
 * KEYS: job, wait, prioritized, delayed, completed, failed, events, expiries, cancels. ARGV: id, now in ms, 1 when a worker
 * that has it can stop it, the reason, the end as JSON without its braces and attempt, the channel, how many stacks are
 * kept. What no worker has ends here and now. For what one has, the request is kept until the task has ended, and said to
 * all workers: to one that is cut off or restarting it is said again by the sweep.
 */
const CANCEL = `
local id = ARGV[1]
local function settled(answer)
  redis.call('SREM', KEYS[9], id)
  return answer
end
if redis.call('EXISTS', KEYS[1]) == 0 then return settled('not_found') end
if redis.call('ZSCORE', KEYS[5], id) or redis.call('ZSCORE', KEYS[6], id) then return settled('already_ended') end
local removed = redis.call('LREM', KEYS[2], -1, id)
if removed == 0 then removed = redis.call('ZREM', KEYS[3], id) end
if removed == 0 then removed = redis.call('ZREM', KEYS[4], id) end
if removed == 0 then
  if ARGV[3] ~= '1' then return 'not_cancellable' end
  redis.call('SADD', KEYS[9], id)
  redis.call('PUBLISH', ARGV[6], id)
  return 'cancelling'
end
local known = redis.call('HMGET', KEYS[1], 'atm', 'stacktrace')
local stacks = known[2] and cjson.decode(known[2]) or {}
while #stacks >= tonumber(ARGV[7]) do table.remove(stacks, 1) end
local attempt = tonumber(known[1] or '0') + 1
stacks[#stacks + 1] = '{"attempt":' .. attempt .. ',' .. ARGV[5] .. '}\\n' .. ARGV[4]
redis.call('HSET', KEYS[1], 'finishedOn', ARGV[2], 'failedReason', ARGV[4], 'stacktrace', cjson.encode(stacks))
redis.call('ZADD', KEYS[6], ARGV[2], id)
redis.call('ZREM', KEYS[8], id)
redis.call('XADD', KEYS[7], '*', 'event', 'failed', 'jobId', id, 'failedReason', ARGV[4], 'prev', 'waiting')
return settled('cancelled')
`

export interface CancelRequest {
  readonly id: TaskId
  /** Whether a worker that runs it can stop it. */
  readonly stoppable: boolean
  /** Milliseconds since 1970. */
  readonly now: number
  /** Who ends it, where nobody runs it: for the record. */
  readonly process: string
}

/** Atomic; one round trip. Twice is once. */
export async function requestCancel(
  redis: Redis,
  keys: QueueKeys,
  { id, stoppable, now, process }: CancelRequest,
): Promise<CancelAnswer> {
  const end = endWithoutStart('cancelled', { attempt: 1, process, now })
  const { attempt: _, ...stored } = end
  const { wait, prioritized, delayed, completed, failed, events, expiries, cancels } = keys
  const names = [keys.job(id), wait, prioritized, delayed, completed, failed, events, expiries, cancels]
  const answer = await redis.eval(
    CANCEL,
    names.length,
    ...names,
    id,
    now,
    stoppable ? 1 : 0,
    describeEnd(end),
    JSON.stringify(stored).slice(1, -1),
    keys.control,
    MAX_ATTEMPT_RECORDS,
  )
  return answer as CancelAnswer
}

/** Says again what is not settled yet. One round trip, and one more for each that is not. */
export async function repeatCancels(redis: Redis, keys: QueueKeys, now: number, process: string): Promise<TaskId[]> {
  const ended: TaskId[] = []
  for (const id of (await redis.smembers(keys.cancels)) as TaskId[]) {
    if ((await requestCancel(redis, keys, { id, stoppable: true, now, process })) === 'cancelled') ended.push(id)
  }
  return ended
}
