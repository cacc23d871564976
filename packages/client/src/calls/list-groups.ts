// Implements the client's method that lists groups. It needs the HTTP API.
import type { GroupView } from '@bullpen/contract'
import { isGroupList } from '../http/group-responses.ts'
import type { SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'

export type ListGroups = (options?: Abortable & { readonly limit?: number }) => Promise<readonly GroupView[]>

export function listGroups(send: SendRequest): ListGroups {
  return async ({ limit, signal } = {}) => {
    const path = `v1/groups${limit === undefined ? '' : `?limit=${limit}`}`
    return (await send('look-up', { method: 'GET', path, isExpected: isGroupList }, signal)).groups
  }
}
