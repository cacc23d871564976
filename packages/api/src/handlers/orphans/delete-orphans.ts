// POST /v1/orphans/delete deletes keys in Redis that belong to nothing.
import type { DeleteOrphansRequest, OrphansDeleted } from '@bullpen/contract'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'

export function deleteOrphans({ broker, log }: ApiContext) {
  return async ({ body, request }: Call): Promise<OrphansDeleted> => {
    // The body has been validated, but is still as the caller sent it.
    const { orphans, by } = body as DeleteOrphansRequest
    const deleted = await broker.orphans.delete(orphans)
    const kept = orphans.filter((orphan) => !deleted.includes(orphan))
    // The broker returns the objects that it was given.
    const audited = { deleted, kept: kept.length, by: requesterOf(request, by), requestId: request.id }
    log.info(audited, 'orphaned keys: deleted')
    return { deleted: [...deleted], kept }
  }
}
