// Implements the client's method that lists the runs of pipelines. It needs the HTTP API.
import type { RunView } from '@bullpen/contract'
import { isRunList } from '../http/run-responses.ts'
import type { SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'

export type ListRuns = (options?: Abortable & { readonly limit?: number }) => Promise<readonly RunView[]>

export function listRuns(send: SendRequest): ListRuns {
  return async ({ limit, signal } = {}) => {
    const path = `v1/runs${limit === undefined ? '' : `?limit=${limit}`}`
    return (await send('look-up', { method: 'GET', path, isExpected: isRunList }, signal)).runs
  }
}
