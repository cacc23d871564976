// Defines the steps of an enqueue that check the limits of the request's API key in the queue. The steps run in the script that
// adds the task, so that concurrent producers cannot exceed a limit together.
import {
  type BullpenError,
  type EnqueueRate,
  EnqueueRateError,
  QueueFullError,
  type QueueLimits,
} from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { COUNTED_MARK } from '../internals/status/task-charge.ts'
import { TOKEN_BUCKET } from '../store/scripts.ts'

/** Stands for a limit that is never reached. */
const COUNT_ONLY = '-'

/**
 * The step before the add. `apiKey` is '' or the result of {@link encodeApiKey}. `pending_tasks` is the number of tasks that the
 * same script adds before this one. If the new task replaces another task of the same API key, the replaced task is not counted.
 * The step sets `charge_api_key` to a function that counts the task `id` for the API key and takes a token, once the task has
 * been added.
 */
export const API_KEY_LIMITS = `
local charge_api_key
if apiKey ~= '' then ${TOKEN_BUCKET}
  local name, max_tasks, max, per = string.match(apiKey, '^(%S+) (%S*) (%d*) (%d*)$')
  if max_tasks ~= '' and max_tasks ~= '${COUNT_ONLY}' then
    local found = tonumber(call('HGET', base .. 'api-key-tasks', name) or '0')
    if replaced and string.sub(call('HGET', base .. replaced, 'atEnd') or '', 2) == name then found = found - 1 end
    if found + pending_tasks >= tonumber(max_tasks) then return { 'api key full', found, tonumber(max_tasks) } end
  end
  local now, tokens_left
  if max ~= '' then
    max, per = tonumber(max), tonumber(per)
    local time = call('TIME')
    now = time[1] * 1000 + time[2] / 1000
    tokens_left = function() return tokens_in(call('HGET', base .. 'api-key-rates', name), now, max, per) end
    local tokens = tokens_left()
    if whole_tokens(tokens) <= pending_tasks then
      return { 'rate', math.ceil((pending_tasks + 1 - tokens) * per / max) }
    end
  end
  charge_api_key = function()
    if tokens_left then call('HSET', base .. 'api-key-rates', name, stored_bucket(tokens_left() - 1, now)) end
    if max_tasks == '' then return end
    call('HSET', base .. id, 'atEnd', '${COUNTED_MARK}' .. name)
    call('HINCRBY', base .. 'api-key-tasks', name, 1)
  end
end`

/** The step after the add. When the task ends, the status index refunds its charge (../internals/status/task-charge.ts). */
export const CHARGE_API_KEY = `if charge_api_key then charge_api_key() end`

/** The reply of {@link API_KEY_LIMITS} if the API key has too many tasks in the queue. */
export type ApiKeyFullReply = readonly ['api key full', found: number, max: number]

/** The reply of {@link API_KEY_LIMITS} if there are too few tokens. `retryAfterMs` is the time until there are enough. */
export type RateReply = readonly ['rate', retryAfterMs: number]

/** Encodes the step's argument. `limits` are those that apply to the task now. */
export function encodeApiKey({ apiKeyName }: NewTask, limits: QueueLimits | undefined): string {
  if (apiKeyName === undefined || limits?.perApiKey === undefined) return ''
  const { enqueueRate, maxUnfinishedTasks } = limits.perApiKey
  if (enqueueRate === undefined && maxUnfinishedTasks === undefined) return ''
  const maxTasks = maxUnfinishedTasks === Number.POSITIVE_INFINITY ? COUNT_ONLY : (maxUnfinishedTasks ?? '')
  return `${apiKeyName} ${maxTasks} ${enqueueRate?.max ?? ''} ${enqueueRate?.perMs ?? ''}`
}

/** Returns the error for a refused task whose arguments {@link encodeApiKey} has encoded. */
export function decodeApiKeyReply(
  reply: ApiKeyFullReply | RateReply,
  { apiKeyName = '', queue }: NewTask,
  limits: QueueLimits | undefined,
): BullpenError {
  if (reply[0] === 'api key full') {
    const [, found, max] = reply
    return new QueueFullError({ queue, limit: 'maxUnfinishedTasks', apiKeyName, max, found })
  }
  return new EnqueueRateError({
    apiKeyName,
    queue,
    rate: limits?.perApiKey?.enqueueRate ?? NO_RATE,
    retryAfterMs: reply[1],
  })
}

const NO_RATE: EnqueueRate = { max: 0, perMs: 0 }
