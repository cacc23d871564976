// GET /v1/groups lists the groups that have not ended. GET /v1/groups/{id} shows one or waits for its end, and
// GET /v1/groups/{id}/results shows what its members returned. POST /v1/groups/{id}/seal lets a group end once all its members have ended,
// and POST /v1/groups/{id}/cancel cancels all its members.
import type { GroupList, GroupResults, GroupView } from '@bullpen/contract'
import { groupId, type groupResultsQuerySchema, type groupsQuerySchema } from '@bullpen/contract/internal'
import { groupNotFound, groupResults, groupView } from '@bullpen/engine/internal'
import type { z } from 'zod'
import { requesterIn } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { IdCall, QueryCall } from '../../http/routes/route.ts'
import { findOrWait, type WaitQuery } from '../../http/wait.ts'

export async function listGroups(
  { broker }: ApiContext,
  { query }: QueryCall<typeof groupsQuerySchema>,
): Promise<GroupList> {
  return { groups: (await broker.groups.list(query.limit)).map(groupView) }
}

export async function showGroup({ broker, closing }: ApiContext, call: IdCall<WaitQuery>): Promise<GroupView> {
  const id = groupId(call.params.id)
  const group = await findOrWait(
    call,
    closing,
    () => broker.groups.find(id),
    (signal) => broker.groups.waitUntilEnded(id, signal),
  )
  if (group === undefined) throw groupNotFound(id)
  return groupView(group)
}

export async function showGroupResults(
  { broker }: ApiContext,
  { params, query: { from, limit } }: IdCall<z.output<typeof groupResultsQuerySchema>>,
): Promise<GroupResults> {
  return groupResults(await broker.groups.members(groupId(params.id), from, limit), from)
}

export async function sealGroup({ broker }: ApiContext, { params }: IdCall): Promise<GroupView> {
  return groupView(await broker.groups.seal(groupId(params.id)))
}

export async function cancelGroup({ broker, log }: ApiContext, call: IdCall): Promise<GroupView> {
  const id = groupId(call.params.id)
  const by = requesterIn(call)
  const group = await broker.groups.cancel(id, by)
  log.info({ group: id, by, requestId: call.request.id }, 'group cancelled')
  return groupView(group)
}
