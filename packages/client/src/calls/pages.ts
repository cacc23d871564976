// Requests the pages of a listing one after the other.
import type { Check } from '../http/shape.ts'
import type { SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'

export interface PageOptions extends Abortable {
  /** The number of entries per request, from 1 to 200. Defaults to 50. */
  readonly pageSize?: number
}

/** Yields the pages of the listing at `path`. Each page is requested when the iteration reaches it. */
export async function* pagesOf<P extends { readonly next?: string | undefined }>(
  send: SendRequest,
  {
    path,
    query,
    isExpected,
  }: { readonly path: string; readonly query: URLSearchParams; readonly isExpected: Check<P> },
  { pageSize, signal }: PageOptions,
): AsyncGenerator<P, void, void> {
  if (pageSize !== undefined) query.set('limit', String(pageSize))
  for (let cursor: string | undefined; ; query.set('cursor', cursor)) {
    const text = query.size === 0 ? '' : `?${query}`
    const page = await send('look-up', { method: 'GET', path: `${path}${text}`, isExpected }, signal)
    yield page
    cursor = page.next
    if (cursor === undefined) return
  }
}
