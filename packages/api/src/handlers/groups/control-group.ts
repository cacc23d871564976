// POST /v1/groups/{id}/seal lets a group end once all its members have ended. POST /v1/groups/{id}/cancel cancels all its members.
import type { GroupView } from '@bullpen/contract'
import { groupId } from '@bullpen/contract/internal'
import { groupView } from '@bullpen/engine/internal'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import type { GroupParams } from './show-groups.ts'

export function sealGroup({ broker }: ApiContext) {
  return async ({ params }: Call<GroupParams>): Promise<GroupView> =>
    groupView(await broker.groups.seal(groupId(params.id)))
}

export function cancelGroup({ broker, log }: ApiContext) {
  return async ({ params, body, request }: Call<GroupParams>): Promise<GroupView> => {
    // The body has been validated. It is undefined, null, or an object with an optional name.
    const { by: name } = (body ?? {}) as { readonly by?: string }
    const id = groupId(params.id)
    const by = requesterOf(request, name)
    const group = await broker.groups.cancel(id, by)
    log.info({ group: id, by, requestId: request.id }, 'group cancelled')
    return groupView(group)
  }
}
