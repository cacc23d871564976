// Reads what a waiting task in a lane waits for, and how many tasks with the same concurrency key start before it.
import type { WaitsFor } from '@bullpen/contract'
import { keyIn, listOf, prioritiesOf } from '../../internals/turns/lanes.ts'
import { defineScript } from '../script.ts'

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
  lua: `
local lane = redis.call('HGET', job, 'lane')
if not lane then return nil end
local key = ${keyIn('lane')}
local list = ${listOf('key')}
local length = redis.call('LLEN', list)
local function waits_for(ahead)
  local time = redis.call('ZSCORE', base .. 'lane-times', key)
  if time then return { ahead, 'rate', time } end
  return { ahead, redis.call('ZSCORE', base .. 'blocked-lanes', key) and 'concurrency' or 'turn' }
end
local rank = redis.call('ZRANK', ${prioritiesOf('key')}, id)
if rank then return waits_for(math.min(tonumber(max), length + rank)) end
local index = redis.call('LPOS', list, id, 'RANK', -1, 'MAXLEN', max)
if index then return waits_for(length - index - 1) end
if length > tonumber(max) then return waits_for(tonumber(max)) end
`,
  answer(reply): WaitsFor | undefined {
    if (reply === null) return undefined
    const [ahead, kind, time] = reply as [number, WaitsFor['kind'], string?]
    return { kind, ahead, ...(time !== undefined && { until: Number(time) }) }
  },
})
