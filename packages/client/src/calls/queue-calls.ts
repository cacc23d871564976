// Implements the client's methods that list a queue's tasks, and cancel them by filter. They need the HTTP API.
import type { Cancellation, CancelPreview, CancelRequest, TaskStatus, TaskView } from '@bullpen/contract'
import { isCancellation, isCancelPreview, isTaskPage } from '../http/responses.ts'
import type { SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'
import { type PageOptions, pagesOf } from './pages.ts'

interface ListOptions extends PageOptions {
  readonly queue: string
  readonly status: TaskStatus
}

export interface QueueCalls {
  /**
   * Cancels all of a queue's tasks that match the filter and have been enqueued so far. Once the call resolves, none of these
   * tasks will be started, and all of them have the status `cancelled`. {@link cancellation} reports how many have ended. The
   * call takes up to 2.5 s if a worker does not respond. The client does not repeat a call whose outcome is unknown, because a
   * repeat would also cancel tasks that have been enqueued since.
   */
  cancelMany(filter: CancelRequest, options?: Abortable): Promise<Cancellation>
  /** Returns how many tasks {@link cancelMany} would cancel now, without cancelling any. */
  previewCancel(filter: CancelRequest, options?: Abortable): Promise<CancelPreview>
  /** Returns the progress of a {@link cancelMany}, which is available for 24 hours after the cancellation is completed. */
  cancellation(id: string, options?: Abortable): Promise<Cancellation>
  /**
   * Lists a queue's tasks that have the given status. Tasks that have ended are listed newest first. Each page is requested when the
   * iteration reaches it.
   */
  list(options: ListOptions): AsyncGenerator<TaskView, void, void>
}

export function queueCalls(send: SendRequest): QueueCalls {
  return {
    async cancelMany(filter, { signal } = {}) {
      const body = JSON.stringify(filter)
      return send('once', { method: 'POST', path: 'v1/tasks/cancel', body, isExpected: isCancellation }, signal)
    },

    async previewCancel(filter, { signal } = {}) {
      const body = JSON.stringify(filter)
      const path = 'v1/tasks/cancel?dryRun=true'
      return send('look-up', { method: 'POST', path, body, isExpected: isCancelPreview }, signal)
    },

    async cancellation(id, { signal } = {}) {
      const path = `v1/cancels/${encodeURIComponent(id)}`
      return send('look-up', { method: 'GET', path, isExpected: isCancellation }, signal)
    },

    async *list({ queue, status, ...page }) {
      const listing = { path: 'v1/tasks', query: { queue, status }, isExpected: isTaskPage }
      for await (const { tasks } of pagesOf(send, listing, page)) yield* tasks
    },
  }
}
