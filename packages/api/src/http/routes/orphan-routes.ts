// Defines the routes that find and delete what Redis holds without an owner.
import {
  deleteOrphansSchema,
  orphanPageSchema,
  orphansDeletedSchema,
  orphansQuerySchema,
} from '@bullpen/contract/internal'
import { deleteOrphans, findOrphans } from '../../handlers/orphans/orphans.ts'
import type { ApiContext } from '../context.ts'
import { type Route, routesOf } from './route.ts'

const routes = routesOf({ tag: 'Fleet' })

export function orphanRoutes(context: ApiContext): readonly Route[] {
  return [
    routes.get('/v1/orphans', {
      access: 'key',
      operationId: 'findOrphans',
      summary: 'Find keys in Redis that belong to nothing',
      description:
        "Examines a part of the namespace's keys and entries for about 3 s, and returns those that belong to nothing, such as the lock of a " +
        'task that does not exist. Each of them is examined again, after at least a second, before it is returned. At least half of ' +
        "Redis's time is left for other clients. Follow `next` until it is absent. A key may be returned twice. The search changes nothing.",
      query: orphansQuerySchema,
      responses: {
        200: { description: 'One page, which may be empty although more pages follow.', schema: orphanPageSchema },
      },
      problems: ['invalid_cursor', 'redis_unavailable'],
      handle: (call) => findOrphans(context, call),
    }),
    routes.post('/v1/orphans/delete', {
      operationId: 'deleteOrphans',
      summary: 'Delete keys in Redis that belong to nothing',
      description:
        'Deletes those of the named keys and entries that have no owner. Whether each of them has an owner is decided again, in the same ' +
        'atomic step. Keys that are listed for another reason are kept. Repeating the request changes nothing.',
      body: deleteOrphansSchema,
      responses: { 200: { description: 'What was deleted, and what was kept.', schema: orphansDeletedSchema } },
      problems: ['redis_unavailable'],
      handle: (call) => deleteOrphans(context, call),
    }),
  ]
}
