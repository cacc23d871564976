// Implements the client's methods that list groups and the runs of pipelines. They need the HTTP API.
import type { GroupView, RunView } from '@bullpen/contract'
import { isGroupList } from '../http/group-responses.ts'
import { queryText } from '../http/request-parts.ts'
import { isRunList } from '../http/run-responses.ts'
import type { SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'

type List<T> = (options?: Abortable & { readonly limit?: number }) => Promise<readonly T[]>
export type ListGroups = List<GroupView>
export type ListRuns = List<RunView>

export function listGroups(send: SendRequest): ListGroups {
  return async ({ limit, signal } = {}) =>
    (
      await send(
        'look-up',
        { method: 'GET', path: `v1/groups${queryText({ limit })}`, isExpected: isGroupList },
        signal,
      )
    ).groups
}

export function listRuns(send: SendRequest): ListRuns {
  return async ({ limit, signal } = {}) =>
    (await send('look-up', { method: 'GET', path: `v1/runs${queryText({ limit })}`, isExpected: isRunList }, signal))
      .runs
}
