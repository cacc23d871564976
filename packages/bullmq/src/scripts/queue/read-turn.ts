// Reads what a waiting task in a lane waits for, and how many tasks of the same lane start before it.
import type { LaneWait } from '@bullpen/contract'
import { parseLimiter } from '@bullpen/engine/internal'
import { listOf, nameIn, prioritiesOf } from '../../internals/turns/lanes.ts'
import { TICKET_OF } from '../../internals/turns/limiters/limiter-steps.ts'
import { LUA_MARK, splitName } from '../../internals/turns/limiters/needs.ts'
import { defineScript } from '../script.ts'

type Kind = 'turn' | 'concurrency' | 'rate' | 'limiter'

/**
 * - KEYS: the task.
 * - ARGV: the prefix of the queue's keys, the task's id, how many tasks to count at most.
 *
 * Returns undefined if the task is not in a lane. If the task is further behind in a long lane, it is not searched for, so a task that has
 * left such a lane since may be reported as waiting in it. Takes Redis O(log n) for a task with a priority. Otherwise, the time
 * grows with the number of tasks that are counted.
 */
export const readTurn = defineScript({
  name: 'read-turn',
  kind: 'reads',
  keys: ['job'],
  args: ['base', 'id', 'max'],
  lua: `${TICKET_OF}
local lane = redis.call('HGET', job, 'lane')
if not lane then return nil end
local name = ${nameIn('lane')}
${splitName('name')}
local list = ${listOf('name')}
local length = redis.call('LLEN', list)
local function waits_for(ahead)
  local time = redis.call('ZSCORE', base .. 'lane-times', name)
  if time then return { ahead, 'rate', time } end
  if not redis.call('ZSCORE', base .. 'blocked-lanes', name) then return { ahead, 'turn' } end
  local limiter = needs and ticket_of(base, name, key, needs)
  if limiter and limiter ~= 'key' then
    return { ahead, 'limiter', limiter, redis.call('ZSCORE', base .. 'lane-times', ${LUA_MARK} .. limiter) }
  end
  return { ahead, 'concurrency' }
end
local rank = redis.call('ZRANK', ${prioritiesOf('name')}, id)
if rank then return waits_for(math.min(tonumber(max), length + rank)) end
local index = redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', max)
if index then return waits_for(length - index - 1) end
if length > tonumber(max) then return waits_for(tonumber(max)) end
`,
  answer(reply): LaneWait | undefined {
    if (reply === null) return undefined
    const [ahead, kind, what = '', at] = reply as [number, Kind, string?, (string | null)?]
    switch (kind) {
      case 'rate':
        return { kind, ahead, until: Number(what) }
      case 'limiter': {
        const [, service] = /^service:(.*)$/.exec(what) ?? []
        if (service !== undefined) return { kind: 'breaker', service, ahead, ...(at != null && { until: Number(at) }) }
        const limiter = parseLimiter(what)
        return limiter === undefined ? { kind: 'turn', ahead } : { kind: limiter.kind, limiter: limiter.name, ahead }
      }
      default:
        return { kind, ahead }
    }
  },
})
