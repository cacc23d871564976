// Implements the client's methods that search, count, retry and delete dead tasks. They need the HTTP API.
import type {
  ChangeDeadRequest,
  DeadTaskAction,
  DeadTaskFilter,
  DeadTaskPreview,
  DeadTaskRequest,
  DeadTaskRequestPage,
  Deleted,
  FingerprintCounts,
  Retried,
  RetryOneRequest,
  TaskView,
} from '@bullpen/contract'
import { queryText } from '../http/request-parts.ts'
import {
  isDeadPreview,
  isDeadRequest,
  isDeadRequestPage,
  isDeleted,
  isFingerprintCounts,
  isRetried,
  isTaskPage,
} from '../http/responses.ts'
import { randomId } from '../random-id.ts'
import type { SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'
import { type PageOptions, pagesOf } from './pages.ts'

interface SearchOptions extends DeadTaskFilter, PageOptions {}

export interface DeadTaskCalls {
  /** Lists the dead tasks that match every field, newest first. Each page is requested when the iteration reaches it. */
  deadTasks(options: SearchOptions): AsyncGenerator<TaskView, void, void>
  /** Counts dead tasks by kind of error, in one queue or in all of them. The largest count comes first. */
  countDead(options?: Abortable & { readonly queue?: string }): Promise<FingerprintCounts['fingerprints']>
  /**
   * Retries the dead tasks of a queue that match every field and have died so far, at a limited rate. The call only stores the
   * request; {@link deadTaskRequest} reports its progress. The client does not repeat a call whose outcome is unknown, because a
   * repeat would also retry tasks that have died since.
   */
  retryDead(filter: ChangeDeadRequest, options?: Abortable): Promise<DeadTaskRequest>
  /** Deletes the dead tasks of a queue that match every field, in the same way as {@link retryDead} retries them. */
  deleteDead(filter: ChangeDeadRequest, options?: Abortable): Promise<DeadTaskRequest>
  /** Returns how many tasks {@link retryDead} or {@link deleteDead} would change now, without changing any. */
  previewDead(filter: DeadTaskFilter, options?: Abortable): Promise<DeadTaskPreview>
  /** Returns the progress of a request, which is available for seven days after the request is done. */
  deadTaskRequest(id: string, options?: Abortable): Promise<DeadTaskRequest>
  /**
   * Stops a request. Once the call has resolved, no further task is changed, and the tasks that were already changed stay so. Returns
   * the final progress, whose status is `done` if the call came too late.
   */
  stopDeadRequest(id: string, options?: Abortable & { readonly by?: string }): Promise<DeadTaskRequest>
  /**
   * Lists the requests of {@link retryDead} and {@link deleteDead} in one queue or in all of them, newest first: who sent them, and
   * how many tasks were changed. A request is listed for seven days after it is done, if it is among the newest 1,000 of its queue.
   * `limit` is a number from 1 to 200 and defaults to 50.
   */
  deadTaskRequests(
    options?: Abortable & { readonly queue?: string; readonly limit?: number },
  ): Promise<DeadTaskRequestPage['requests']>
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
  const change = (action: DeadTaskAction, filter: ChangeDeadRequest, { signal }: Abortable = {}) => {
    const body = JSON.stringify(filter)
    return send('once', { method: 'POST', path: `v1/dead-tasks/${action}`, body, isExpected: isDeadRequest }, signal)
  }

  return {
    async *deadTasks({ pageSize, signal, ...filter }) {
      const listing = { path: 'v1/dead-tasks', query: filter, isExpected: isTaskPage }
      for await (const { tasks } of pagesOf(send, listing, { pageSize, signal })) yield* tasks
    },

    async countDead({ queue, signal } = {}) {
      const path = `v1/dead-tasks/fingerprints${queryText({ queue })}`
      const { fingerprints } = await send('look-up', { method: 'GET', path, isExpected: isFingerprintCounts }, signal)
      return fingerprints
    },

    async retryTask(id, { signal, ...options } = {}) {
      const body = JSON.stringify({ id: randomId(), ...options })
      const path = `v1/tasks/${encodeURIComponent(id)}/retry`
      return send('idempotent', { method: 'POST', path, body, isExpected: isRetried }, signal)
    },

    async deleteTask(id, { by, signal } = {}) {
      const path = `v1/tasks/${encodeURIComponent(id)}${queryText({ by })}`
      return send('idempotent', { method: 'DELETE', path, isExpected: isDeleted }, signal)
    },

    retryDead: (filter, options) => change('retry', filter, options),
    deleteDead: (filter, options) => change('delete', filter, options),

    async previewDead(filter, { signal } = {}) {
      const body = JSON.stringify(filter)
      const path = 'v1/dead-tasks/retry?dryRun=true'
      return send('look-up', { method: 'POST', path, body, isExpected: isDeadPreview }, signal)
    },

    async deadTaskRequest(id, { signal } = {}) {
      const path = `v1/dead-tasks/requests/${encodeURIComponent(id)}`
      return send('look-up', { method: 'GET', path, isExpected: isDeadRequest }, signal)
    },

    async stopDeadRequest(id, { by, signal } = {}) {
      const path = `v1/dead-tasks/requests/${encodeURIComponent(id)}/stop`
      const body = JSON.stringify({ by })
      return send('idempotent', { method: 'POST', path, body, isExpected: isDeadRequest }, signal)
    },

    async deadTaskRequests({ queue, limit, signal } = {}) {
      const path = `v1/dead-tasks/requests${queryText({ queue, limit })}`
      const page = await send('look-up', { method: 'GET', path, isExpected: isDeadRequestPage }, signal)
      return page.requests
    },
  }
}
