// GET /v1/groups lists the groups that have not ended. GET /v1/groups/{id} shows one or waits for its end, and
// GET /v1/groups/{id}/results shows what its members returned.
import type { GroupList, GroupResults, GroupView } from '@bullpen/contract'
import { groupId, type groupResultsQuerySchema, type groupsQuerySchema } from '@bullpen/contract/internal'
import { groupNotFound, groupResults, groupView } from '@bullpen/engine/internal'
import type { z } from 'zod'
import { abortOnFirst } from '../../http/abort-on-first.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { secondsToWait, type WaitQuery } from '../../http/wait.ts'

export interface GroupParams {
  readonly id: string
}

export function listGroups({ broker }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof groupsQuerySchema>>): Promise<GroupList> => ({
    groups: (await broker.groups.list(query.limit)).map(groupView),
  })
}

export function showGroup({ broker, closing }: ApiContext) {
  return async ({ params, query, request, reply }: Call<GroupParams, WaitQuery>): Promise<GroupView> => {
    const id = groupId(params.id)
    const seconds = secondsToWait(query, request, reply)
    const group =
      seconds === 0
        ? await broker.groups.find(id)
        : await abortOnFirst(seconds * 1_000, closing, reply.raw, (signal) => broker.groups.waitUntilEnded(id, signal))
    if (group === undefined) throw groupNotFound(id)
    return groupView(group)
  }
}

export function showGroupResults({ broker }: ApiContext) {
  return async ({
    params,
    query: { from, limit },
  }: Call<GroupParams, z.output<typeof groupResultsQuerySchema>>): Promise<GroupResults> =>
    groupResults(await broker.groups.members(groupId(params.id), from, limit), from)
}
