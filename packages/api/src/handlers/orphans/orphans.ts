// GET /v1/orphans finds keys in Redis that belong to nothing, and POST /v1/orphans/delete deletes them.
import type { DeleteOrphansRequest, OrphanPage, OrphansDeleted } from '@bullpen/contract'
import type { orphansQuerySchema } from '@bullpen/contract/internal'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call, QueryCall } from '../../http/routes/route.ts'

export async function findOrphans(
  { broker, closing }: ApiContext,
  { query }: QueryCall<typeof orphansQuerySchema>,
): Promise<OrphanPage> {
  // When the API shuts down, the caller gets a cursor with which another process continues.
  const { orphans, examined, next } = await broker.orphans.search(query.cursor, closing)
  return { orphans: [...orphans], examined, ...(next !== undefined && { next }) }
}

export async function deleteOrphans({ broker, log }: ApiContext, { body, request }: Call): Promise<OrphansDeleted> {
  // The body has been validated, but is still as the caller sent it.
  const { orphans, by } = body as DeleteOrphansRequest
  const deleted = await broker.orphans.delete(orphans)
  const kept = orphans.filter((orphan) => !deleted.includes(orphan))
  // The broker returns the objects that it was given.
  const audited = { deleted, kept: kept.length, by: requesterOf(request, by), requestId: request.id }
  log.info(audited, 'orphaned keys: deleted')
  return { deleted: [...deleted], kept }
}
