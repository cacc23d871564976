// Defines a Lua function that ends tasks that no worker is running. It is used to cancel tasks by id or by filter, and to expire
// tasks.
//
// BullMQ itself ends the task: the task is moved from the place where it waits to `active`, and the pinned version's
// moveToFinished fails it, with the token that does not require a lock. Parents, deduplication keys and BullMQ's metrics are
// therefore updated as at any other end. Four things differ, because no attempt has run: the end does not count as an attempt,
// the script does not fetch another job, the event `failed` names the place where the task waited, and the event `drained` is
// added only if the script has emptied the queue.
import { ATTEMPT_STATE_LABELS, type CancelReason } from '@bullpen/contract'
import { endWithoutStart } from '@bullpen/engine/internal'
import { MetricsTime } from 'bullmq'
import { describeEnd } from '../../../codec.ts'
import { bullmqScripts } from '../../../internals/composition/composed-scripts.ts'
import { TAKE_OUT } from '../../../internals/status/places.ts'
import { STATUS_INDEX_WITH_REDIS } from '../../../internals/status/status-index.ts'
import { ATTEMPT_RECORDS, REMOVE_ENDED, TASK_EVENTS } from '../../../store/scripts.ts'

const moveToFinished = bullmqScripts().find(({ name }) => name === 'moveToFinished')?.content ?? ''

/**
 * `ends_without_run(base, part)`, where `base` is the prefix of the queue's keys and `part` is `cancelled` or `expired`, returns a
 * table of functions:
 *
 * - `take_out(id)`: removes a task from the list or set in which it waits (../../../internals/status/places.ts). Returns the name of that
 *   list or set, or nil if the task is not in any.
 * - `finish(id, place, at, reason, record)`: ends a task that was taken out of `place`. `at` is in ms since 1970; the task ends at
 *   the end of its last attempt if that is later. `reason` and `record` are those of `endOf`. Also removes the task from the index
 *   of queue timeouts, and the request to cancel it. A task of a pipeline run that is cancelled with its run is then deleted.
 * - `close()`: adds the event `drained` if a task was taken out of `wait`, `prioritized` or a lane and the queue is now empty. Call
 *   `close` once.
 * - `call(command, ...)`: replaces `redis.call` for every command on a place.
 *
 * BullMQ does not store how many data points its metrics have. If there are any metrics, the ends are therefore counted with
 * BullMQ's highest limit, and a Worker with a lower limit removes the rest.
 */
export const END_WITHOUT_RUN = `${STATUS_INDEX_WITH_REDIS}${ATTEMPT_RECORDS}${TASK_EVENTS}${REMOVE_ENDED}
local function move_to_finished(redis, KEYS, ARGV)
${moveToFinished}
end
local function ends_without_run(base, part)
  local index = status_index(base)
  local call = index.redis.call
  index.into.failed = part
  local keys = {}
  for i, name in ipairs({ 'wait', 'active', 'prioritized', 'events', 'stalled', 'limiter', 'delayed', 'paused', 'meta', 'pc',
    'failed', '', 'metrics:failed', 'marker' }) do keys[i] = base .. name end
  local wait, active, prioritized, events = keys[1], keys[2], keys[3], keys[4]
  local options, prev
  local has_taken = false

  local function add_event(stream, ...)
    local event = { ... }
    if stream == events and event[3] == 'drained' then return end
    if stream == events and event[3] == 'failed' then event[#event] = prev end
    return call('XADD', stream, unpack(event))
  end
  local bullmq = setmetatable({
    call = function(command, key, field, ...)
      if command == 'XADD' then return add_event(key, field, ...) end
      if command == 'HINCRBY' and field == 'atm' then return 0 end
      if field == nil then return call(command, key) end
      return call(command, key, field, ...)
    end,
  }, { __index = redis })

${TAKE_OUT}
  local ends = { call = call, take_out = take_out }
  function ends.finish(id, place, at, reason, record)
    if not options then
      local has_metrics = call('EXISTS', keys[13], base .. 'metrics:completed') > 0
      options = cmsgpack.pack({ token = '0', keepJobs = { count = -1 }, attempts = 1,
        maxMetricsSize = has_metrics and ${MetricsTime.ONE_MONTH} or '' })
    end
    local job = base .. id
    local stacks, ended = read_stacks(job)
    local time = string.format('%.0f', math.max(tonumber(at), ended))
    local made, events, name, tags, group = unpack(call('HMGET', job, 'atm', 'events', 'name', 'tags', 'group'))
    local attempt = tonumber(made or '0') + 1
    append_stack(job, stacks, '{"attempt":' .. attempt .. ',"startedAt":' .. time .. ',"endedAt":' .. time .. ','
      .. string.sub(record, 2) .. '\\n' .. reason)
    prev = place == 'delayed' and 'delayed' or 'waiting'
    has_taken = has_taken or place ~= 'delayed'
    keys[12] = job
    call('RPUSH', active, id)
    move_to_finished(bullmq, keys, { id, time, 'failedReason', reason, 'failed', '', base, options, '' })
    call('ZREM', base .. 'expiries', id)
    call('HDEL', base .. 'cancelling', id)
    if events then
      local ended = cjson.decode(record)
      local error = cjson.encode({ code = ended.reason, message = ended.message or '' })
      local outcome = part == 'cancelled' and '${ATTEMPT_STATE_LABELS.TERMINATED_STOP_SIGNAL}' or '${ATTEMPT_STATE_LABELS.TERMINATED_TIMEOUT}'
      add_task_event(base, id, events, event_start('ended', name, tags, group) .. ',"outcome":"' .. outcome
        .. '","error":' .. error .. (ended.by and ',"by":' .. cjson.encode(ended.by) or '') .. ',"status":"' .. part .. '"}')
    end
    if index.unkept == id then remove_ended_task(base, part, id) end
  end
  function ends.close()
    if not has_taken or call('LLEN', wait) + call('LLEN', active) + call('EXISTS', prioritized, base .. 'lanes') > 0 then return end
    call('XADD', events, '*', 'event', 'drained')
  end
  return ends
end
`

/**
 * Builds the strings that `finish` takes: the reason that BullMQ stores, and the attempt record as JSON, without the fields that
 * the script adds. `process` is the process that ended the task; `by` is who cancelled it.
 */
export function endOf(
  reason: CancelReason | 'queue_timeout',
  { process, by }: { readonly process: string; readonly by?: string | undefined },
): { readonly reason: string; readonly record: string } {
  const record = endWithoutStart(reason, { attempt: 1, process, now: 0, by })
  const { attempt: _, startedAt: _started, endedAt: _ended, ...stored } = record
  return { reason: describeEnd(record), record: JSON.stringify(stored) }
}
