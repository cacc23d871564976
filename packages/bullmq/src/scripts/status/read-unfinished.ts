// Reads the tasks that have not ended, page by page, together with the changes since the previous page.
import { TASK_OVERHEAD_BYTES } from '@bullpen/engine/internal'
import { FOLLOWED_MARK } from '../../internals/status/task-charge.ts'
import { listOf, prioritiesOf } from '../../internals/turns/lanes.ts'
import { defineScript } from '../script.ts'

/** The position that a count has reached. */
export interface CountPosition {
  /** The number of the list or set among the script's keys, from 1. */
  readonly place: number
  /** Among the lanes, where the lane is in their order, as a limit of `ZRANGEBYSCORE`. '-inf' before the first of them. */
  readonly lane: string
  /** The number of tasks of the place, or of the lane, that have been read. */
  readonly passed: number
  /** The id of the newest event that has been read, or '' before the first page. */
  readonly lastEvent: string
}

export interface UnfinishedPage {
  readonly at: CountPosition
  /** Three values for each task: its id, its bytes (-1 if the task has ended or does not exist), and its API key's name or ''. */
  readonly tasks: readonly (string | number)[]
  /** The stored sums as of the last page, on which nothing is left to read. Otherwise undefined. */
  readonly stored: StoredSums | undefined
}

export interface StoredSums {
  readonly bytes: number
  /** The number of repairs so far. */
  readonly drift: number
  readonly ofApiKeys: ReadonlyMap<string, number>
}

/**
 * - KEYS: the places of tasks that have not ended, in the order in which they are read, `totals`, the tasks of API keys, and the event
 *   stream.
 * - ARGV: `base`, the prefix of the queue's keys; the {@link CountPosition}; `limit`, the number of tasks and of events to read.
 *
 * Returns an {@link UnfinishedPage}, or undefined if the stream no longer contains all events since the previous page. Takes Redis
 * about 2 µs for each task.
 *
 * The page first contains the current state of each task for which there has been an event since the previous page, and then the next
 * tasks of a place. A caller that keeps the last state of each task knows all unfinished tasks as of the last page:
 *
 * - A task that moves during the count has an event.
 * - No other task is skipped. Tasks leave a list or a lane at its right end, and a set at its beginning, so the position of
 *   each task that is left falls by at most one for each event. The page therefore begins as many tasks earlier as there have
 *   been events. A task that is read twice does no harm.
 */
export const readUnfinished = defineScript({
  name: 'read-unfinished',
  kind: 'reads',
  keys: ['active', 'waitingChildren', 'delayed', 'prioritized', 'lanes', 'wait', 'totals', 'apiKeyTasks', 'events'],
  args: ['base', 'place', 'lane', 'passed', 'lastEvent', 'limit'],
  lua: `
local is_list = { [active] = true, [wait] = true }
local at, left = tonumber(place), tonumber(limit)
passed = tonumber(passed)

local tasks, is_known = {}, {}
local function report(id)
  if is_known[id] then return end
  is_known[id] = true
  local name, ended, at_end = unpack(redis.call('HMGET', base .. id, 'name', 'finishedOn', 'atEnd'))
  local bytes = name and not ended and redis.call('HSTRLEN', base .. id, 'data') + ${TASK_OVERHEAD_BYTES} or -1
  if bytes ~= -1 and at_end and string.sub(at_end, 1, 1) == '${FOLLOWED_MARK}' then
    bytes = bytes + redis.call('HSTRLEN', base .. id, 'followUps') + redis.call('HSTRLEN', base .. id, 'compensations')
  end
  local n = #tasks
  tasks[n + 1], tasks[n + 2], tasks[n + 3] = id, bytes, string.sub(at_end or '', 2)
end

local unread = 0
if lastEvent == '' then
  local newest = redis.call('XREVRANGE', events, '+', '-', 'COUNT', 1)[1]
  lastEvent = newest and newest[1] or '0-0'
else
  local entries = redis.call('XRANGE', events, lastEvent, '+', 'COUNT', limit + 1)
  local first = 1
  if lastEvent ~= '0-0' then
    -- The stream has been trimmed if the event that was read last is gone.
    if not entries[1] or entries[1][1] ~= lastEvent then return false end
    first = 2
  end
  unread = #entries - first + 1
  for i = first, #entries do
    lastEvent = entries[i][1]
    local fields = entries[i][2]
    for n = 1, #fields, 2 do
      if fields[n] == 'jobId' then report(fields[n + 1]) end
    end
  end
end

-- If there may be more events, the next page reads them first.
if unread >= tonumber(limit) then left = 0 end
passed = math.max(0, passed - unread)

-- Reads the tasks of one lane, as if its tasks with a priority followed those of its list.
local function read_lane(name)
  local list, ids = ${listOf('name')}, {}
  local length = redis.call('LLEN', list)
  if passed < length then ids = redis.call('LRANGE', list, -passed - left, -passed - 1) end
  local first = math.max(0, passed - length)
  local others = #ids < left and redis.call('ZRANGE', ${prioritiesOf('name')}, first, first + left - #ids - 1) or {}
  for _, id in ipairs(others) do ids[#ids + 1] = id end
  return ids
end

while KEYS[at] ~= totals and left > 0 do
  local key, ids = KEYS[at], nil
  local name, order
  if key == lanes then
    name, order = unpack(redis.call('ZRANGEBYSCORE', lanes, lane, '+inf', 'WITHSCORES', 'LIMIT', 0, 1))
    if order ~= lane then lane, passed = order or lane, 0 end
  end
  if name then ids = read_lane(name)
  elseif key == lanes then ids = {}
  elseif is_list[key] then ids = redis.call('LRANGE', key, -passed - left, -passed - 1)
  else ids = redis.call('ZRANGE', key, passed, passed + left - 1) end
  for _, id in ipairs(ids) do report(id) end
  if #ids < left and name then lane, passed = '(' .. order, 0
  elseif #ids < left then at, passed = at + 1, 0 else passed = passed + #ids end
  left = left - #ids
end
local page = { at, lane, passed, lastEvent, tasks }
if KEYS[at] == totals and unread < tonumber(limit) then
  page[6], page[7] = unpack(redis.call('HMGET', totals, 'bytes', 'drift'))
  page[6], page[7], page[8] = page[6] or '0', page[7] or '0', redis.call('HGETALL', apiKeyTasks)
end
return page
`,
  answer(reply): UnfinishedPage | undefined {
    if (reply === null) return undefined
    const [place, lane, passed, lastEvent, tasks, bytes, drift, ofApiKeys] = reply as Reply
    const stored = ofApiKeys && { bytes: Number(bytes), drift: Number(drift), ofApiKeys: countsOf(ofApiKeys) }
    return { at: { place, lane, passed, lastEvent }, tasks, stored }
  },
})

type Reply = readonly [
  place: number,
  lane: string,
  passed: number,
  lastEvent: string,
  tasks: readonly (string | number)[],
  bytes?: string,
  drift?: string,
  ofApiKeys?: readonly string[],
]

/** Decodes the fields of a hash of numbers, which alternate with their values. */
function countsOf(fields: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (let i = 0; i + 1 < fields.length; i += 2) counts.set(fields[i] ?? '', Number(fields[i + 1]))
  return counts
}
