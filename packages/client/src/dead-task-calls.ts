// Implements the client's methods that retry and delete dead tasks. They need the HTTP API.
import type { Deleted, Retried, RetryOneRequest } from '@bullpen/contract'
import { isDeleted, isRetried } from './http/responses.ts'
import { randomId } from './random-id.ts'
import type { SendRequest } from './repetition.ts'
import type { Abortable } from './task-handle.ts'

export interface DeadTaskCalls {
  /**
   * Runs a dead task again. The task keeps its id, gets all attempts of its retry policy again, and waits behind the other tasks of
   * its queue. The client repeats a call that got no response, because its id makes it idempotent.
   *
   * @throws ProblemError `task_not_dead` if the task is not dead, or `invalid_input` if the contract rejects the new input.
   */
  retryTask(id: string, options?: RetryOneRequest & Abortable): Promise<Retried>
  /**
   * Deletes a dead task. If the first response is lost, the client repeats the call, which then rejects with `task_not_found`.
   *
   * @throws ProblemError `task_not_dead` if the task is not dead.
   */
  deleteTask(id: string, options?: Abortable & { readonly by?: string }): Promise<Deleted>
}

export function deadTaskCalls(send: SendRequest): DeadTaskCalls {
  return {
    async retryTask(id, { signal, ...options } = {}) {
      const body = JSON.stringify({ id: randomId(), ...options })
      const path = `v1/tasks/${encodeURIComponent(id)}/retry`
      return send('idempotent', { method: 'POST', path, body, isExpected: isRetried }, signal)
    },

    async deleteTask(id, { by, signal } = {}) {
      const query = by === undefined ? '' : `?${new URLSearchParams({ by })}`
      const path = `v1/tasks/${encodeURIComponent(id)}${query}`
      return send('idempotent', { method: 'DELETE', path, isExpected: isDeleted }, signal)
    },
  }
}
