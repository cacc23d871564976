// Requests the pages of a listing one after the other.
import { queryText } from '../http/request-parts.ts'
import type { Check } from '../http/shape.ts'
import type { SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'

export interface PageOptions extends Abortable {
  /** The number of entries per request, from 1 to 200. Defaults to 50. */
  readonly pageSize?: number
}

interface Listing<P> {
  readonly path: string
  readonly query: Parameters<typeof queryText>[0]
  readonly isExpected: Check<P>
}

/** Yields the pages of the listing. Each page is requested when the iteration reaches it. */
export async function* pagesOf<P extends { readonly next?: string | undefined }>(
  send: SendRequest,
  { path, query, isExpected }: Listing<P>,
  { pageSize: limit, signal }: { readonly [K in keyof PageOptions]?: PageOptions[K] | undefined },
): AsyncGenerator<P, void, void> {
  for (let cursor: string | undefined; ; ) {
    const text = queryText({ ...query, limit, cursor })
    const page = await send('look-up', { method: 'GET', path: `${path}${text}`, isExpected }, signal)
    yield page
    cursor = page.next
    if (cursor === undefined) return
  }
}
