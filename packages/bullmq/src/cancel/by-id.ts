// Cancels one task by its id.
//
// The protocol:
//   1. One script decides what to do from where the task is. A task that no worker has (waiting or delayed) ends at once.
//   2. If a worker has the task, the script stores the request and who made it in the hash `cancelling`, and publishes both on
//      the queue's cancel channel. The caller receives the answer `cancelling`.
//   3. Every consumer of the queue is subscribed to that channel (`openCancelSubscriber`). The consumer that runs the task aborts
//      its attempt, whose verdict is `cancelled`, whatever the retry policy. A consumer that does not know the task remembers the
//      id, because the task may be about to reach it. If the attempt has just ended with a retry, step 4 ends the waiting task.
//   4. The leader repeats the stored requests every 1.5 s, in case a worker was cut off or restarting when
//      the id was published. The script removes a request when its task has ended.
//
// A short task can't be stopped once it is running. For such a task `stoppable` is false, and no request is stored.
import type { Log, TaskId } from '@bullpen/contract'
import type { CancelAnswer } from '@bullpen/contract/internal'
import { endWithoutStart, MAX_ATTEMPT_RECORDS } from '@bullpen/engine/internal'
import { describeEnd } from '../codec.ts'
import { TAKE_OUT } from '../internals/places.ts'
import { STATUS_INDEX } from '../internals/status-index.ts'
import type { QueueKeys } from '../keys.ts'
import { openSubscriber } from '../redis/subscriber.ts'
import type { Commander } from '../scripts/script.ts'

/**
 * KEYS: job, wait, prioritized, delayed, completed, failed, events, expiries, cancelling. ARGV: id, now in ms, '1' if a worker
 * can stop the task, the reason, the attempt record as JSON without its braces and attempt, the cancel channel, how many
 * stacks to keep, who requested the cancel ('' if unknown), the queue's prefix. Returns `cancelled`, `cancelling`, `not_cancellable`,
 * `already_ended` or `not_found`.
 */
const CANCEL = `${STATUS_INDEX}
local index = status_index(ARGV[9])
local redis = index.redis
index.into.failed = 'cancelled'
${TAKE_OUT}
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
  /** Whether a worker that is running the task can stop it. */
  readonly stoppable: boolean
  /** Milliseconds since 1970. */
  readonly now: number
  /** Who requested the cancel, for the attempt record; '' if unknown. */
  readonly by: string
  /** For the attempt record: the process that ends the task if no worker has it. */
  readonly process: string
}

/** Cancels a task. Atomic and idempotent. Takes one round trip. */
export async function cancelById(
  redis: Commander,
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
    keys.base,
  )
  return answer as CancelAnswer
}

/** Repeats the requests whose tasks have not ended. Takes one round trip, and one more for each request. */
export async function repeatCancels(redis: Commander, keys: QueueKeys, now: number, process: string): Promise<void> {
  for (const [id, by] of Object.entries(await redis.hgetall(keys.cancelling))) {
    await cancelById(redis, keys, { id: id as TaskId, stoppable: true, now, by, process })
  }
}

/** How many ids of cancelled tasks that are not running here are remembered. The oldest are dropped first. */
const REMEMBERED_IDS = 1_000

export interface CancelSubscriber {
  /**
   * Returns who cancelled this task if the cancel arrived before the task did, or '' if that is unknown. Each cancel is returned
   * only once.
   */
  cancelledBy(id: string): string | undefined
  close(): void
}

export interface CancelSubscriberOptions {
  readonly redisUrl: string
  readonly keys: QueueKeys
  /** Cancels a running task. Returns false if the task is not running here. `by` is who requested the cancel, '' if unknown. */
  readonly cancel: (id: TaskId, by: string) => boolean
  /** Called when there may be a new cancel rule. */
  readonly onRulesChanged: () => void
  readonly log: Log
}

export function openCancelSubscriber(options: CancelSubscriberOptions): CancelSubscriber {
  const { redisUrl, keys, cancel, onRulesChanged, log } = options
  const notRunningHere = new Map<string, string>()
  const remember = (id: string, by: string): void => {
    notRunningHere.set(id, by)
    const [oldest] = notRunningHere.keys()
    if (notRunningHere.size > REMEMBERED_IDS && oldest !== undefined) notRunningHere.delete(oldest)
  }
  const onCancel = (message: string): void => {
    const [id = '', ...words] = message.split(' ')
    const by = words.join(' ')
    if (!cancel(id as TaskId, by)) remember(id, by)
  }
  const subscriber = openSubscriber({
    redisUrl,
    channels: [keys.cancelChannel, keys.cancelRulesChannel],
    onMessage(channel, message) {
      if (channel === keys.cancelRulesChannel) onRulesChanged()
      else onCancel(message)
    },
    // If a cancel by id was missed, the maintenance repeats it.
    onSubscribed: onRulesChanged,
    log,
  })
  return {
    cancelledBy(id) {
      const by = notRunningHere.get(id)
      notRunningHere.delete(id)
      return by
    },
    close: subscriber.close,
  }
}
