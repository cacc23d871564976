// Ends waiting tasks whose queue timeout has passed.
import type { TaskId } from '@bullpen/contract'
import { listOf, nameIn } from '../../internals/turns/lanes.ts'
import { FENCE, STORED_REPLY } from '../../store/scripts.ts'
import { END_WITHOUT_RUN } from '../includes/ended-tasks/end-without-run.ts'
import { REPLY_KEPT_MS } from '../run-until-answered.ts'
import { defineScript } from '../script.ts'

/**
 * The number of tasks, counted from the end of the waiting list at which workers fetch, that are cheap to remove. Tasks with the
 * same queue timeout expire at that end.
 */
const NEAR = 1_000
/**
 * How many entries of the waiting list, or of lanes, one script may pass to reach tasks that are further away. 200,000 take
 * about 2.6 ms.
 */
const MAX_PASSED = 200_000

interface ExpiredPage {
  /** Whether more tasks may be due. */
  readonly hasMore: boolean
  readonly expired: readonly { readonly id: TaskId; readonly task: string }[]
}

/**
 * - KEYS: expiries, the waiting list, the leader's fencing number, the caller's last reply.
 * - ARGV: the prefix of the queue's keys, the current time (ms since 1970), how many tasks to examine, the reason and the record
 *   of `endOf`, the leader's fencing number, the id of this request.
 *
 * Returns the tasks that the script expired, or undefined if there is a newer leader. If the script expired tasks, a second call
 * with the same request returns the same tasks. A task that was fetched or has ended is only removed from the index, because the
 * worker that fetches a task checks its queue timeout. If that worker releases the task without starting it, the task returns to
 * the index at the time that this script stores in the field `expiresAt` (../../internals/composition/composed-scripts.ts).
 */
export const expireTasksScript = defineScript({
  name: 'expire-tasks',
  kind: 'frees',
  keys: ['expiries', 'wait', 'leader', 'endReply'],
  args: ['base', 'now', 'limit', 'reason', 'record', 'fencing', 'request'],
  lua: `${END_WITHOUT_RUN}${FENCE}${STORED_REPLY}
local earlier = stored_reply(endReply, request)
if earlier then return earlier end
if is_deposed(leader, fencing) then return false end
local ends = ends_without_run(base, 'expired')
local due = redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
local expired, passed = { #due == 2 * limit and 1 or 0 }, 0
for i = 1, #due, 2 do
  local id = due[i]
  local name, starts, lane = unpack(redis.call('HMGET', base .. id, 'name', 'ats', 'lane'))
  local lane_name = lane and ${nameIn('lane')}
  local list = lane_name and ${listOf('lane_name')} or wait
  if passed > 0 and passed + redis.call('LLEN', list) > ${MAX_PASSED} then
    expired[1] = 1
    break
  end
  redis.call('ZREM', expiries, id)
  starts = tonumber(starts or '0')
  local waits = name and starts == 0
  local is_near = waits and redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', ${NEAR})
  local place = waits and ends.take_out(id)
  if (place == 'wait' or place == 'lanes') and not is_near then passed = passed + redis.call('LLEN', list) end
  if place then
    ends.finish(id, place, now, reason, record)
    expired[#expired + 1] = id
    expired[#expired + 1] = name
  elseif name and starts == 1 and redis.call('EXISTS', base .. id .. ':lock') == 1 then
    redis.call('HSET', base .. id, 'expiresAt', due[i + 1])
  end
end
ends.close()
if #expired > 1 then store_reply(endReply, request, expired, ${REPLY_KEPT_MS}) end
return expired
`,
  answer(reply): ExpiredPage | undefined {
    if (reply === null) return undefined
    const [hasMore, ...flat] = reply as [number, ...string[]]
    const expired = Array.from({ length: flat.length / 2 }, (_, i) => ({
      id: flat[2 * i] as TaskId,
      task: flat[2 * i + 1] ?? '',
    }))
    return { hasMore: hasMore === 1, expired }
  },
})
