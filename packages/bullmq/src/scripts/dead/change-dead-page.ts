// Retries or deletes one page of the dead tasks that a request selects.

import { FENCE, MATCHING_DEAD, RANK_IN_SET, REMOVE_ENDED, TIME } from '../../store/scripts.ts'
import { RETRY_DEAD } from '../includes/ended-tasks/retry-dead.ts'
import { defineScript } from '../script.ts'

/** How many tasks one script changes at most. Retrying 100 tasks takes Redis a few milliseconds. */
const CHANGED_AT_ONCE = 100
/** How many tasks one script examines at most. */
const EXAMINED_AT_ONCE = 500
/** For how long a request saves up its rate while nothing is changed, in ms. */
const SAVED_MS = 500

export interface ChangedPage {
  /** Whether the request is done, or was done before. */
  readonly isDone: boolean
  /** How long to wait until the rate permits another task, in ms. */
  readonly waitMs: number
}

/**
 * - KEYS: the queue's fencing number, the requests, the request's progress, the set to search, which is that of the dead tasks or of
 *   one fingerprint.
 * - ARGV: the leader's number, the prefix of the queue's keys, the request's id, the action, who sent the request, the filter as
 *   JSON, the earliest and the latest time of death ('-inf' and '+inf' for none), the rate in tasks per second, how long to keep the
 *   progress of a request that is done (ms), '1' to retry tasks although their compensations were released.
 *
 * Returns undefined if there is a newer leader. The position and the number of changed tasks are stored in the same step in
 * which the tasks are changed. The script may therefore be sent again, or be sent by another process, without changing a task
 * twice. A retry skips, unless it is to include them, tasks whose compensations were released, and two more kinds of tasks:
 * those that the request has already retried and that are dead again, even if the clock of the worker that ended them is
 * behind, and those for which another task was enqueued in another queue.
 */
export const changeDeadPage = defineScript({
  name: 'change-dead-page',
  kind: 'frees',
  keys: ['leader', 'deadRequests', 'progress', 'set'],
  args: [
    'fencing',
    'base',
    'id',
    'action',
    'by',
    'filterText',
    'earliest',
    'latest',
    'rate',
    'keepMs',
    'afterCompensation',
  ],
  lua: `${RETRY_DEAD}${REMOVE_ENDED}${MATCHING_DEAD}${RANK_IN_SET}${TIME}${FENCE}
if is_deposed(leader, fencing) then return false end
if redis.call('HEXISTS', deadRequests, id) == 0 then return { 1, 0 } end
local filter, rate, now = decode_json(filterText), tonumber(rate), millis()
local score, last, tokens, at = unpack(redis.call('HMGET', progress, 'score', 'last', 'tokens', 'tokensAt'))
local most = math.max(1, rate * ${SAVED_MS / 1_000})
tokens = math.min(most, tokens and tonumber(tokens) + math.max(0, now - tonumber(at)) * rate / 1000 or most)
local allowed = math.min(${CHANGED_AT_ONCE}, math.floor(tokens))
if allowed == 0 then return { 0, math.ceil((1 - tokens) * 1000 / rate) } end

local change
if action == 'retry' then
  local retry = retries_dead(base)
  change = function(task)
    local stored = redis.call('HGET', base .. task, 'retries')
    local retries = stored and decode_json(stored) or {}
    for _, each in ipairs(retries) do
      if each.request == id or each.copy then return false end
    end
    if afterCompensation ~= '1' and redis.call('HEXISTS', base .. task, 'compensated') == 1 then return false end
    retry(task, retries, { at = now, by = by, request = id }, whole(now), '')
    return true
  end
else
  change = function(task)
    remove_ended_task(base, 'dead', task)
    return true
  end
end

local first = last and rank_in(set, score, last) or redis.call('ZCOUNT', set, '-inf', '(' .. earliest)
local beyond = redis.call('ZCOUNT', set, '-inf', latest)
local page = redis.call('ZRANGE', set, first, math.min(first + ${EXAMINED_AT_ONCE}, beyond) - 1, 'WITHSCORES')
local changed, is_full = 0, false
for i = 1, #page, 2 do
  if matches_dead(base, filter, page[i]) then
    if changed == allowed then
      is_full = true
      break
    end
    if change(page[i]) then changed = changed + 1 end
  end
  last, score = page[i], page[i + 1]
end
local is_done = not is_full and first + ${EXAMINED_AT_ONCE} >= beyond
if changed > 0 then redis.call('HINCRBY', progress, 'changed', changed) end
if is_done then
  redis.call('HDEL', deadRequests, id)
  redis.call('HSET', progress, 'doneAt', whole(now))
  redis.call('PEXPIRE', progress, keepMs)
  return { 1, 0 }
end
redis.call('HSET', progress, 'score', score, 'last', last, 'tokens', tostring(tokens - changed), 'tokensAt', whole(now))
return { 0, 0 }
`,
  answer(reply): ChangedPage | undefined {
    if (reply === null) return undefined
    const [isDone, waitMs] = reply as [number, number]
    return { isDone: isDone === 1, waitMs }
  },
})
