// The step of an enqueue that checks the queue's limits. It runs in the script that adds the task, so that concurrent producers
// never exceed a limit together. The limits are arguments of the script, which reads only sizes that Redis knows: the check takes
// constant time.
import { QueueFullError, type QueueLimitName, type QueueLimits } from '@bullpen/contract'

/**
 * `limits` is '' or the result of {@link encodeLimits}. The delayed set contains scheduled and retrying tasks. A task that replaces
 * another one (./unique-steps.ts) takes its place.
 */
export const LIMIT = `
if limits ~= '' then
  local found = call('LLEN', base .. 'wait') + call('ZCARD', base .. 'prioritized') + call('ZCARD', base .. 'delayed')
    - (replaced and 1 or 0)
  if found >= tonumber(limits) then return { 'full', 'maxTasks', found } end
end`

/** The reply of {@link LIMIT} if the task is refused. */
export type FullReply = readonly ['full', limit: QueueLimitName, found: number]

export function encodeLimits({ maxTasks }: QueueLimits): string {
  return `${maxTasks ?? ''}`
}

/** Returns the error of a refused task. `limits` are those with which the script was called. */
export function decodeFull(
  [, limit, found]: FullReply,
  queue: string,
  limits: QueueLimits | undefined,
): QueueFullError {
  return new QueueFullError({ queue, limit, found, max: limits?.[limit] ?? found })
}
