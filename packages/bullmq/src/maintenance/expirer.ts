// The sweep: ends tasks that have waited longer than their queue timeout and that nobody has taken.
import type { Log, TaskId } from '@bullpen/contract'
import { endWithoutStart } from '@bullpen/engine/internal'
import type { Redis } from 'ioredis'
import { describeEnd, encodeStack } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { throttledLog } from '../throttled-log.ts'

/** Half of what an expired task may wait at most until it is seen, with room for a slow sweep. */
export const SWEEP_EVERY_MS = 2_000

/** Removing one from the far end of a list of 200,000 costs Redis 2.6 ms; the oldest stand at the near end. */
const AT_ONCE = 20

/**
 * KEYS: expiries, wait, prioritized, delayed, failed, events. ARGV: now in ms, how many at most, the queue's key prefix,
 * the reason, the stacks. Returns id and name of each that it has ended, one after the other, and before them how many it
 * has looked at. One that has been taken, or has ended, is only forgotten: whoever took it looks at its queue timeout.
 */
const SWEEP = `
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2])
local ended = { #due }
for _, id in ipairs(due) do
  redis.call('ZREM', KEYS[1], id)
  local job = ARGV[3] .. id
  local known = redis.call('HMGET', job, 'name', 'ats')
  if known[1] and tonumber(known[2] or '0') == 0 then
    local removed = redis.call('LREM', KEYS[2], -1, id)
    if removed == 0 then removed = redis.call('ZREM', KEYS[3], id) end
    if removed == 0 then removed = redis.call('ZREM', KEYS[4], id) end
    if removed > 0 then
      redis.call('HSET', job, 'finishedOn', ARGV[1], 'failedReason', ARGV[4], 'stacktrace', ARGV[5])
      redis.call('ZADD', KEYS[5], ARGV[1], id)
      redis.call('XADD', KEYS[6], '*', 'event', 'failed', 'jobId', id, 'failedReason', ARGV[4], 'prev', 'waiting')
      ended[#ended + 1] = id
      ended[#ended + 1] = known[1]
    end
  end
end
return ended
`

export interface Expired {
  readonly id: TaskId
  readonly task: string
}

/** `now`: ms since 1970. One round trip for every twenty that are due, and one more. */
export async function expireTasks(redis: Redis, keys: QueueKeys, now: number, process: string): Promise<Expired[]> {
  const end = endWithoutStart('queue_timeout', { attempt: 1, process, now })
  const names = [keys.expiries, keys.wait, keys.prioritized, keys.delayed, keys.failed, keys.events]
  const stacks = JSON.stringify([encodeStack(end, undefined)])
  const expired: Expired[] = []
  for (;;) {
    const answer = await redis.eval(SWEEP, names.length, ...names, now, AT_ONCE, keys.job(''), describeEnd(end), stacks)
    const [looked, ...ended] = answer as [number, ...string[]]
    for (let i = 0; i < ended.length; i += 2) expired.push({ id: ended[i] as TaskId, task: ended[i + 1] ?? '' })
    if (looked < AT_ONCE) return expired
  }
}

/** Sweeps again and again, until the returned function is called. Keeps no process alive. */
export function keepSweeping(sweep: () => Promise<void>, log: Log): () => void {
  const failed = throttledLog((err: unknown, suppressed) =>
    log.debug({ err, suppressed }, 'the sweep for expired tasks failed'),
  )
  let sweeping = false
  const timer = setInterval(() => {
    if (sweeping) return
    sweeping = true
    sweep()
      .catch(failed)
      .finally(() => {
        sweeping = false
      })
  }, SWEEP_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
