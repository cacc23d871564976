// Encodes the limits of the request's API key in a queue for the script that adds the task (../store/lua/includes/add/queue-limits.lua),
// and decodes its refusals.
import {
  type BullpenError,
  type EnqueueRate,
  EnqueueRateError,
  QueueFullError,
  type QueueLimits,
} from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { rateInQueue } from '@bullpen/engine/internal'

/** Stands for a limit that is never reached. */
const COUNT_ONLY = '-'

/** The reply if the API key has too many tasks in the queue. */
export type ApiKeyFullReply = readonly ['api key full', found: number, max: number]

/** The reply if there are too few tokens. `retryAfterMs` is the time until there are enough. */
export type RateReply = readonly ['rate', retryAfterMs: number]

/** Encodes the task's field. `limits` are those that apply to the task now. */
export function encodeApiKey({ apiKeyName, hasToken }: NewTask, limits: QueueLimits | undefined): string {
  if (apiKeyName === undefined || limits?.perApiKey === undefined) return ''
  const { maxUnfinishedTasks } = limits.perApiKey
  const enqueueRate = rateInQueue({ apiKeyName, hasToken, limits })
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
