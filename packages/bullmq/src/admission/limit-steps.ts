// Defines the step of an enqueue that checks the queue's limits. The step runs in the script that adds the task, so that
// concurrent producers cannot exceed a limit together. The script receives the limits as arguments and reads only one task and
// the sizes of Redis's structures, so the check takes constant time.
import { QueueFullError, type QueueLimitName, type QueueLimits } from '@bullpen/contract'

/**
 * `limits` is '' or the result of {@link encodeLimits}. The delayed set contains both scheduled and retrying tasks. BullMQ stores
 * a task's delay in the job's options, and sets the job's `delay` field to 0 when the task becomes ready. If the new task
 * replaces another one (./unique-steps.ts), the replaced task is not counted.
 */
export const LIMIT = `
if limits ~= '' then
  local max_tasks, max_age = string.match(limits, '^(%d*) (%d*)$')
  if max_tasks ~= '' then
    local found = call('LLEN', base .. 'wait') + call('ZCARD', base .. 'prioritized') + call('ZCARD', base .. 'delayed')
      - (replaced and 1 or 0)
    if found >= tonumber(max_tasks) then return { 'full', 'maxTasks', found, tonumber(max_tasks) } end
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

/** The reply of {@link LIMIT} if the task is refused. */
export type FullReply = readonly ['full', limit: QueueLimitName, found: number, max: number]

export function encodeLimits({ maxTasks, maxAgeMs }: QueueLimits): string {
  return `${maxTasks ?? ''} ${maxAgeMs ?? ''}`
}

/** Returns the error for a refused task. */
export function decodeFull([, limit, found, max]: FullReply, queue: string): QueueFullError {
  return new QueueFullError({ queue, limit, found, max })
}
