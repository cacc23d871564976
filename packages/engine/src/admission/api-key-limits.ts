// Decides which limits of an API key apply to a task, and what happens to a request that exceeds a rate.
import {
  BullpenError,
  type Catalogue,
  type EnqueueRate,
  EnqueueRateError,
  type QueueLimits,
  type ReachedRate,
  type TaskDefinition,
} from '@bullpen/contract'
import { formatEnqueueRate } from '@bullpen/contract/internal'
import type { QueueTokens } from '../ports/broker/broker.ts'
import type { NewTask } from '../ports/broker/new-task.ts'

/** Returns the rate of which the task takes a token when it is added to its queue, or undefined if it takes none. */
export function rateInQueue({
  apiKeyName,
  hasToken,
  limits,
}: Pick<NewTask, 'apiKeyName' | 'hasToken' | 'limits'>): EnqueueRate | undefined {
  return apiKeyName === undefined || hasToken === true ? undefined : limits?.perApiKey?.enqueueRate
}

/** The tokens to take in a queue that limits the rate of the API key. */
export interface LimitedTokens {
  readonly queue: string
  readonly rate: EnqueueRate
  readonly tokens: number
}

/**
 * Returns the tokens to take in those queues that limit the rate of the API key, in the order in which every request takes them. `limits`
 * are those that apply now.
 *
 * @throws BullpenError `payload_too_large` if a rate never permits this many tokens at once.
 */
export function limitedTokens(apiKeyName: string, wanted: readonly QueueTokens[]): readonly LimitedTokens[] {
  const limited = wanted.flatMap(({ queue, limits, tokens }) => {
    const rate = limits?.perApiKey?.enqueueRate
    return rate === undefined ? [] : [{ queue, rate, tokens }]
  })
  for (const { queue, rate, tokens } of limited) {
    if (tokens > rate.max) throw rateExceeded({ apiKeyName, queue, rate, wanted: tokens, retryAfterMs: 0 })
  }
  return limited.sort((a, b) => (a.queue < b.queue ? -1 : 1))
}

/**
 * Returns whether the name of the task's API key is stored with the task, so that its child tasks can be counted for the same key.
 */
export function keepsApiKey({
  apiKeyName,
  passesOnApiKey,
  limits,
}: Pick<NewTask, 'apiKeyName' | 'passesOnApiKey' | 'limits'>): boolean {
  return apiKeyName !== undefined && (passesOnApiKey === true || limits?.perApiKey?.maxUnfinishedTasks !== undefined)
}

/**
 * Returns whether any of the catalogue's queues counts the unfinished tasks of API keys. A task in another queue may have child tasks
 * in that queue.
 */
export function countsApiKeys(catalogue: Catalogue): boolean {
  return catalogue.queues.some((queue) => catalogue.queue(queue).limits?.perApiKey?.maxUnfinishedTasks !== undefined)
}

/**
 * Returns the limits for a child task whose parent came from an API key. The child is counted for the same key if its queue counts
 * tasks, but is never refused.
 */
export function inheritedLimits({ queueSettings }: TaskDefinition): QueueLimits | undefined {
  return queueSettings.limits?.perApiKey?.maxUnfinishedTasks === undefined ? undefined : countedLimits
}

/** The limits of a task that is counted for its API key, but never refused. */
export const countedLimits: QueueLimits = { perApiKey: { maxUnfinishedTasks: Number.POSITIVE_INFINITY } }

/** `wanted` is the number of tokens that the request needs. */
interface ExceededRate extends ReachedRate {
  readonly wanted: number
}

/**
 * Returns the error for a request that exceeds a rate. The code is `payload_too_large` if the rate never permits this many tasks
 * at once.
 */
export function rateExceeded({ wanted, ...reached }: ExceededRate): BullpenError {
  const { apiKeyName, queue, rate } = reached
  if (wanted <= rate.max) return new EnqueueRateError({ ...reached, tokens: tokensOf(wanted, reached) })
  const place = queue === undefined ? '' : ` in queue '${queue}'`
  return new BullpenError(
    'payload_too_large',
    `the request needs ${wanted} tokens, one for each task that it names, and the rate of API key '${apiKeyName}'${place} is ${formatEnqueueRate(rate)}, which permits at most ${rate.max} at once; send fewer tasks and follow-ups in each request`,
  )
}

/** Returns the tokens of a request for several tasks. Those that are available follow from the time until there are enough. */
function tokensOf(needed: number, { rate, retryAfterMs }: ReachedRate): ReachedRate['tokens'] {
  if (needed === 1) return undefined
  return { needed, available: Math.max(0, Math.floor(needed - (retryAfterMs * rate.max) / rate.perMs)) }
}
