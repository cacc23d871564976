// Implements the client's method that enqueues many tasks at once. It needs the HTTP API.
import {
  type BulkAccepted,
  type BulkResponse,
  type Dropped,
  type InputOf,
  milliseconds,
  type TaskDefinition,
} from '@bullpen/contract'
import type { ProblemError } from '@bullpen/contract/internal'
import { idempotencyHeader } from './http/idempotency-header.ts'
import { errorOf } from './http/problem-response.ts'
import type { SendRequest } from './repetition.ts'
import type { EnqueueOptions } from './task-calls.ts'

export interface EnqueueBulkOptions extends EnqueueOptions {
  /** Whether to store either all of the tasks, at most 250, or none. If none is stored, the call rejects. Defaults to false. */
  readonly atomic?: boolean
}

/**
 * The result for one input: the stored task, a note that the task was dropped because its queue is full, or the error that explains
 * why it was rejected. The error's `outcome` says whether the task may have been stored.
 */
export type BulkEnqueued = BulkAccepted | Dropped | { readonly error: ProblemError }

export interface BulkCalls {
  /**
   * Enqueues one task for each input, at most 1,000 in one request, and resolves with one result for each, in the same order. The
   * options apply to every task. A task that is rejected does not affect the others, so check each result for an `error`.
   *
   * The client repeats a request that got no response, as `enqueue` does. A repeat never stores a task twice. To repeat the
   * tasks that failed, pass an `idempotencyKey` and make the same call again.
   */
  enqueueBulk<D extends TaskDefinition>(
    definition: D,
    inputs: readonly InputOf<D>[],
    options?: EnqueueBulkOptions,
  ): Promise<readonly BulkEnqueued[]>
}

export function bulkCalls(send: SendRequest): BulkCalls {
  return {
    async enqueueBulk({ name }, inputs, { atomic, signal, idempotencyKey, ...call } = {}) {
      if (inputs.length === 0) return []
      const tasks = inputs.map((input) => ({ task: name, input, ...call }))
      const request = {
        method: 'POST',
        path: 'v1/tasks/bulk',
        body: JSON.stringify(atomic === undefined ? { tasks } : { tasks, atomic }),
        headers: { 'idempotency-key': idempotencyHeader(idempotencyKey) },
        waitMs: typeof call.whenFull === 'object' ? milliseconds(call.whenFull.block, 'whenFull') : 0,
      } as const
      const { results } = (await send('idempotent', request, signal)) as BulkResponse
      return results.map((result) => ('error' in result ? { error: errorOf(result.error) } : result))
    },
  }
}
