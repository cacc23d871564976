// Defines the step of an enqueue that checks the queue's limits. The step runs in the script that adds the task, so that
// concurrent producers cannot exceed a limit together. The script receives the limits as arguments and reads only one task, one
// counter and the sizes of Redis's structures, so the check takes constant time.
import { type BullpenError, QueueFullError, type QueueLimitName, type QueueLimits } from '@bullpen/contract'
import { TASK_OVERHEAD_BYTES, tooLargeForQueue } from '@bullpen/engine/internal'
import { bytesOf } from '../internals/status/task-charge.ts'

/**
 * `limits` is '' or the result of {@link encodeLimits}. The delayed set contains both scheduled and retrying tasks. BullMQ stores
 * a task's delay in the job's options, and sets the job's `delay` field to 0 when the task becomes ready. If the new task
 * replaces another one (./unique-steps.ts), the replaced task is not counted. `pending_tasks` and `pending_bytes` are the number
 * and the size of the tasks that the same script adds before this one. `ARGV[2]` is the task's stored string.
 */
export const LIMIT = `
if limits ~= '' then
  local max_tasks, max_bytes, max_age = string.match(limits, '^(%d*) (%d*) (%d*)$')
  if max_tasks ~= '' then
    local found = call('LLEN', base .. 'wait') + call('ZCARD', base .. 'prioritized') + call('ZCARD', base .. 'delayed')
      - (replaced and 1 or 0)
    if found + pending_tasks >= tonumber(max_tasks) then return { 'full', 'maxTasks', found, tonumber(max_tasks) } end
  end
  if max_bytes ~= '' then
    local found = tonumber(call('HGET', base .. 'totals', 'bytes') or '0')
    if replaced then found = found - call('HSTRLEN', base .. replaced, 'data') - ${TASK_OVERHEAD_BYTES} end
    local needed, max = pending_bytes + ${bytesOf('ARGV[2]')}, tonumber(max_bytes)
    if found + needed > max then return { 'full', 'maxBytes', found, max, needed } end
  end
  local first = max_age ~= '' and (call('LINDEX', base .. 'wait', -1) or call('ZRANGE', base .. 'prioritized', 0, 0)[1])
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

/**
 * The reply of {@link LIMIT} if the task is refused. If `limit` is `maxBytes`, `needed` is the number of bytes that the task
 * would take, together with the tasks that the same script adds before it.
 */
export type FullReply = readonly ['full', limit: QueueLimitName, found: number, max: number, needed?: number]

export function encodeLimits({ maxTasks, maxBytes, maxAgeMs }: QueueLimits): string {
  return `${maxTasks ?? ''} ${maxBytes ?? ''} ${maxAgeMs ?? ''}`
}

/** Returns the error for a refused task, which is `payload_too_large` if the task would not fit into an empty queue. */
export function decodeFull([, limit, found, max, needed = 0]: FullReply, queue: string): BullpenError {
  return limit === 'maxBytes' && needed > max
    ? tooLargeForQueue(queue, needed, max)
    : new QueueFullError({ queue, limit, found, max })
}
