// Defines the steps of an enqueue that check the queue's limits. The steps run in the script that adds the task, so that
// concurrent producers cannot exceed a limit together. The script receives the limits as arguments and reads only one task, one
// counter and the sizes of Redis's structures, so the checks take constant time.
import { type BullpenError, QueueFullError, type QueueLimitName, type QueueLimits } from '@bullpen/contract'
import { TASK_OVERHEAD_BYTES, tooLargeForQueue } from '@bullpen/engine/internal'
import { bytesOf } from '../internals/status/task-charge.ts'
import { inLanes } from '../internals/turns/lanes.ts'
import { NEXT_TASK } from '../store/scripts.ts'

/** The size of the task that the script adds, with its follow-ups. `ARGV[2]` is the task's stored string. */
const NEEDED = bytesOf('ARGV[2]', 'followUps')

/**
 * `limits` is '' or the result of {@link encodeLimits}. The delayed set contains both scheduled and retrying tasks. BullMQ stores
 * a task's delay in the job's options, and sets the job's `delay` field to 0 when the task becomes ready. If the new task
 * replaces another one (./unique-steps.ts), the replaced task is not counted. `pending_tasks` is the number of tasks that the
 * same script adds before this one. The step sets `max_bytes` for one of the next two steps.
 */
export const LIMIT = `
local max_bytes = tonumber(limits)
if limits ~= '' and not max_bytes then
  local max_tasks, max_age
  max_tasks, max_bytes, max_age = string.match(limits, '^(%d*),(%d*),(%d*)$')
  max_bytes = tonumber(max_bytes)
  if max_tasks ~= '' then
    local found = call('LLEN', base .. 'wait') + call('ZCARD', base .. 'prioritized') + call('ZCARD', base .. 'delayed')
      + ${inLanes(`base .. 'turn-state'`, 'call')}
      - (replaced and 1 or 0)
    if found + pending_tasks >= tonumber(max_tasks) then return { 'full', 'maxTasks', found, tonumber(max_tasks) } end
  end
  local first
  if max_age ~= '' then${NEXT_TASK}
    first = next_task(base)
  end
  if first and first ~= replaced then
    local enqueued_at, options, starts = unpack(call('HMGET', base .. first, 'timestamp', 'opts', 'ats'))
    if enqueued_at and tonumber(starts or 0) == 0 then
      local now = call('TIME')
      local delay = string.match(options or '', '"delay":(%d+)') or 0
      local found = now[1] * 1000 + math.floor(now[2] / 1000) - enqueued_at - delay
      if found >= tonumber(max_age) then return { 'full', 'maxAge', found, tonumber(max_age) } end
    end
  end
end`

/** As `charge` counts them (../internals/status/task-charge.ts). */
const REPLACED_BYTES = `(replaced and ${['data', 'followUps', 'compensations']
  .map((field) => `call('HSTRLEN', base .. replaced, '${field}')`)
  .join(' + ')} + ${TASK_OVERHEAD_BYTES} or 0)`

/**
 * The step that checks the bytes for a script that adds several tasks. `pending_bytes` is the size of the tasks that the same
 * script adds before this one.
 */
export const CHECK_BYTES = `
if max_bytes then
  local found = tonumber(call('HGET', base .. 'totals', 'bytes') or '0') - ${REPLACED_BYTES}
  local needed = pending_bytes + ${NEEDED}
  if found + needed > max_bytes then return { 'full', 'maxBytes', found, max_bytes, needed } end
end`

/**
 * The step that checks the bytes for a script that adds a single task. It charges for the task before the task is added, because
 * Redis then checks the limit with the command that raises the counter. No later step may refuse the task.
 */
export const CHARGE_BYTES = `
if max_bytes then
  local needed = ${NEEDED}
  local found = call('HINCRBY', base .. 'totals', 'bytes', needed) - needed - ${REPLACED_BYTES}
  if found + needed > max_bytes then
    call('HINCRBY', base .. 'totals', 'bytes', -needed)
    return { 'full', 'maxBytes', found, max_bytes, needed }
  end
  index.is_charged = true
end`

/** The step after {@link CHARGE_BYTES} and the add. It refunds the charge if BullMQ has not added the task. */
export const REFUND_BYTES = `
if index.is_charged and not index.added then call('HINCRBY', base .. 'totals', 'bytes', -(${NEEDED})) end`

/**
 * The reply of the steps if the task is refused. If `limit` is `maxBytes`, `needed` is the number of bytes that the task
 * would take, together with the tasks that the same script adds before it.
 */
export type FullReply = readonly ['full', limit: QueueLimitName, found: number, max: number, needed?: number]

/** Encodes the steps' argument, which is a single number for the many queues that have only a maximum number of bytes. */
export function encodeLimits({ maxTasks, maxBytes, maxAgeMs }: QueueLimits): string {
  if (maxTasks === undefined && maxAgeMs === undefined) return `${maxBytes ?? ''}`
  return `${maxTasks ?? ''},${maxBytes ?? ''},${maxAgeMs ?? ''}`
}

/** Returns the error for a refused task, which is `payload_too_large` if the task would not fit into an empty queue. */
export function decodeFull([, limit, found, max, needed = 0]: FullReply, queue: string): BullpenError {
  return limit === 'maxBytes' && needed > max
    ? tooLargeForQueue(queue, needed, max)
    : new QueueFullError({ queue, limit, found, max })
}
