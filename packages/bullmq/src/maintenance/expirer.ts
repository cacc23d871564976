// Expires tasks that have waited longer than their queue timeout without being fetched.
import type { TaskId } from '@bullpen/contract'
import { endWithoutStart } from '@bullpen/engine/internal'
import { describeEnd, encodeStack } from '../codec.ts'
import { TAKE_OUT } from '../internals/places.ts'
import { STATUS_INDEX } from '../internals/status-index.ts'
import type { QueueKeys } from '../keys.ts'
import { FENCE } from '../scripts/includes/fence.ts'
import type { Commander } from '../scripts/script.ts'

/**
 * How many tasks one script looks at. Removing a task from the far end of a list of 200,000 costs Redis 2.6 ms. The oldest tasks
 * are at the near end.
 */
const PAGE_SIZE = 20

/**
 * KEYS: expiries, wait, prioritized, delayed, failed, events, the fencing number. ARGV: now in ms, how many tasks to look at, the
 * prefix of jobs, the reason, the stacks, the leader's fencing number. Returns how many tasks it looked at, then the id and name of
 * each task that it has expired, or nil if there is a newer leader. A task that was fetched or has ended is only removed from the
 * index, because the worker that fetches a task checks its queue timeout.
 */
const EXPIRE = `${STATUS_INDEX}${FENCE}
if is_deposed(KEYS[7], ARGV[6]) then return false end
local index = status_index(ARGV[3])
local redis = index.redis
index.into.failed = 'expired'
${TAKE_OUT}
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local expired = { #due }
for _, id in ipairs(due) do
  redis.call('ZREM', KEYS[1], id)
  local job = ARGV[3] .. id
  local stored = redis.call('HMGET', job, 'name', 'ats')
  if stored[1] and tonumber(stored[2] or '0') == 0 and take_out(id, KEYS[2], KEYS[3], KEYS[4]) then
    redis.call('HSET', job, 'finishedOn', ARGV[1], 'failedReason', ARGV[4], 'stacktrace', ARGV[5])
    redis.call('ZADD', KEYS[5], ARGV[1], id)
    redis.call('XADD', KEYS[6], '*', 'event', 'failed', 'jobId', id, 'failedReason', ARGV[4], 'prev', 'waiting')
    expired[#expired + 1] = id
    expired[#expired + 1] = stored[1]
  end
end
return expired
`

export interface Expired {
  readonly id: TaskId
  readonly task: string
}

export interface Expiry {
  /** The leader's number. If there is a newer leader, nothing is written. */
  readonly fencing: number
  /** In ms since 1970. */
  readonly now: number
  /** The name of this process, for the attempt records. */
  readonly process: string
}

/** Takes one round trip for every twenty tasks that are due, and one more. */
export async function expireTasks(redis: Commander, keys: QueueKeys, expiry: Expiry): Promise<Expired[]> {
  const { fencing, now, process } = expiry
  const record = endWithoutStart('queue_timeout', { attempt: 1, process, now })
  const names = [keys.expiries, keys.wait, keys.prioritized, keys.delayed, keys.failed, keys.events, keys.leader]
  const args = [
    now,
    PAGE_SIZE,
    keys.job(''),
    describeEnd(record),
    JSON.stringify([encodeStack(record, undefined)]),
    fencing,
  ]
  const expired: Expired[] = []
  for (;;) {
    const answer = await redis.eval(EXPIRE, names.length, ...names, ...args)
    if (answer === null) return expired
    const [looked, ...ended] = answer as [number, ...string[]]
    for (let i = 0; i < ended.length; i += 2) expired.push({ id: ended[i] as TaskId, task: ended[i + 1] ?? '' })
    if (looked < PAGE_SIZE) return expired
  }
}
