// Implements the client's methods that find and delete what Redis holds without an owner. They need the HTTP API.
import type { DeleteOrphansRequest, Orphan, OrphanPage, OrphansDeleted } from '@bullpen/contract'
import { queryText } from '../http/request-parts.ts'
import { isOrphanPage, isOrphansDeleted } from '../http/responses.ts'
import type { SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'

interface FindOptions extends Abortable {
  /** Called after each page with the number of keys and entries that have been examined so far. */
  readonly onProgress?: (examined: number) => void
}

export interface OrphanCalls {
  /**
   * Finds keys in Redis, and entries of keys, that belong to nothing. A million keys and entries take Redis about 10 s, and the
   * search at least twice as long. Each page is requested when the iteration reaches it. A key may be returned twice.
   */
  orphans(options?: FindOptions): AsyncGenerator<Orphan, void, void>
  /**
   * Deletes those of at most 200 keys and entries that have no owner, and returns which were deleted and which were kept. Each is
   * examined again in the step that deletes it.
   */
  deleteOrphans(request: DeleteOrphansRequest, options?: Abortable): Promise<OrphansDeleted>
}

export function orphanCalls(send: SendRequest): OrphanCalls {
  return {
    async *orphans({ onProgress, signal } = {}) {
      let page: OrphanPage | undefined
      let examined = 0
      do {
        // The API responds when it has examined a part of the keys and checked again what it has found.
        const request = {
          method: 'GET',
          path: `v1/orphans${queryText({ cursor: page?.next })}`,
          waitMs: SEARCH_MS,
          isExpected: isOrphanPage,
        } as const
        page = await send('look-up', request, signal)
        examined += page.examined
        onProgress?.(examined)
        yield* page.orphans
      } while (page.next !== undefined)
    },

    async deleteOrphans({ orphans, by }, { signal } = {}) {
      const named = orphans.map(({ key, entry }) => ({ key, entry }))
      const body = JSON.stringify({ orphans: named, by })
      const path = 'v1/orphans/delete'
      return send('idempotent', { method: 'POST', path, body, waitMs: SEARCH_MS, isExpected: isOrphansDeleted }, signal)
    },
  }
}

/** How much longer than other requests a page of the search may take, in ms. */
const SEARCH_MS = 20_000
