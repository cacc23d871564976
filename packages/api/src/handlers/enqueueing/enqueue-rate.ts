// Checks, before anything is stored, how fast a request's API key enqueues tasks.
import { EnqueueRateError } from '@bullpen/contract'
import { withoutEffect } from '@bullpen/contract/internal'
import type { FastifyRequest } from 'fastify'
import type { ApiContext } from '../../http/context.ts'
import type { PlannedTask } from './planned-task.ts'

/**
 * Checks whether the rate of the request's API key permits these tasks and the follow-ups that the request names for them. Nearly always
 * returns undefined, which means that it does. Otherwise returns a promise that resolves once the rate is known to permit the tasks. Counts
 * the tasks that are refused.
 *
 * @throws EnqueueRateError if the rate is exceeded. The promise rejects with the same error.
 * @throws BullpenError `payload_too_large` if the rate never permits this many tasks at once, or `redis_unavailable`.
 */
export function keepToRate(
  context: ApiContext,
  { apiKeyName = '' }: FastifyRequest,
  tasks: readonly Pick<PlannedTask, 'queue' | 'task' | 'tokens'>[],
): Promise<void> | undefined {
  const refuse = (error: unknown): never => {
    if (error instanceof EnqueueRateError) countRefused(context, tasks)
    // Nothing has been sent to Redis for the tasks.
    throw withoutEffect(error)
  }
  try {
    const tokens = tasks.reduce((sum, task) => sum + task.tokens, 0)
    return tokens === 0 ? undefined : context.rates.take(apiKeyName, tokens)?.catch(refuse)
  } catch (error) {
    return refuse(error)
  }
}

/** Counts tasks that a rate has refused. */
export function countRefused({ emit }: ApiContext, tasks: readonly Pick<PlannedTask, 'queue' | 'task'>[]): void {
  for (const { queue, task } of tasks) {
    emit({ event: 'task.refused', queue, task, limit: 'enqueueRate', action: 'rejected' })
  }
}
