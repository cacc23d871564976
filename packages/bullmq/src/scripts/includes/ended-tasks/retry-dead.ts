// Defines a Lua function that retries dead tasks: it returns a task to the place where it waits, with all its attempts.
//
// BullMQ itself moves the task: the pinned version's reprocessJob runs with the status index in place of Redis's `redis`. The
// task's counted attempts are reset. The number of started attempts is kept, because it is the fencing token. Bullpen also resets
// the number of the task's dead workers, because the task would otherwise be dead again as soon as a worker fetched it. A
// quarantined task runs in quarantine again.
import { MAX_RETRY_RECORDS } from '@bullpen/engine/internal'
import { bullmqScripts } from '../../../internals/composition/composed-scripts.ts'
import { retryInQuarantine } from '../../../internals/quarantine-steps.ts'
import { STATUS_INDEX_WITH_REDIS } from '../../../internals/status/status-index.ts'
import { withLanes } from '../../../internals/turns/turn-steps.ts'
import { DECODE_JSON, TASK_EVENTS } from '../../../store/scripts.ts'

const reprocessJob = bullmqScripts().find(({ name }) => name === 'reprocessJob')?.content ?? ''

/**
 * `retries_dead(base)`, where `base` is the prefix of the queue's keys, returns a function `retry(id, retries, entry, at, data)`,
 * which retries a task that is dead:
 *
 * - `retries` is the decoded list of the task's earlier retries, to which the function adds `entry`.
 * - `at` is the time of the retry as text, in ms since 1970. The task's total timeout starts at this time.
 * - `data` replaces the task's stored string. If `data` is '', that string stays as it is.
 *
 * `add_retry(retries, entry)` only adds to such a list, and drops the oldest entries beyond the limit.
 *
 * The task waits behind the other tasks of its queue. If the queue has cancel rules, the task is noted for the pass that may be
 * looking for it (../../../cancel/forget-rules.lua).
 */
export const RETRY_DEAD = `${STATUS_INDEX_WITH_REDIS}${DECODE_JSON}${TASK_EVENTS}
local call = redis.call
local function reprocess_job(redis, KEYS, ARGV, base)
${withLanes(reprocessJob)}
end
local function add_retry(retries, entry)
  while #retries >= ${MAX_RETRY_RECORDS} do table.remove(retries, 1) end
  retries[#retries + 1] = entry
end
local function retries_dead(base)
  local index = status_index(base)
  local call = index.redis.call
  local keys = {}
  for i, name in ipairs({ '', 'events', 'failed', 'wait', 'meta', 'active', 'marker', 'prioritized', 'pc' }) do keys[i] = base .. name end
  local has_rules = call('EXISTS', base .. 'cancel-rules') == 1

  -- An envelope begins with its version, and the time of the retry follows. The time also tells two retries apart, so a second
  -- retry in the same millisecond, or after the clock was set back, is stored as one millisecond later than the first.
  local function with_time(data, stored, at)
    local head, rest = string.match(data, '^({"v":%d+,)(.*)$')
    if not head then return data end
    local earlier = tonumber(string.match(stored, '^{"v":%d+,"retriedAt":(%d+),') or '')
    if earlier and earlier >= tonumber(at) then at = string.format('%.0f', earlier + 1) end
    return head .. '"retriedAt":' .. at .. ',' .. string.gsub(rest, '^"retriedAt":%d+,', '')
  end

  return function(id, retries, entry, at, data)
    local job = base .. id
    add_retry(retries, entry)
    local stored, events, name, tags, group = unpack(call('HMGET', job, 'data', 'events', 'name', 'tags', 'group'))
    local next_data = with_time(data ~= '' and data or stored, stored, at)
    call('HSET', job, 'retries', cjson.encode(retries), 'data', next_data)
    call('HDEL', job, 'stc')
    -- A request to cancel an earlier attempt of the task, which the leader has not removed yet.
    call('HDEL', base .. 'cancelling', id)
    ${retryInQuarantine('job')}
    keys[1] = job
    reprocess_job(index.redis, keys, { id, 'LPUSH', 'failedReason', 'failed', '1', '0' }, base)
    if has_rules then call('SADD', base .. 'cancel-returned', id) end
    if events then
      local start = event_start('retry_requested', name, tags, group)
      add_task_event(base, id, events, start .. ',"by":' .. cjson.encode(entry.by or '') .. '}')
    end
  end
end
`
