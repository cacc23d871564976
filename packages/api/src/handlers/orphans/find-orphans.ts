// GET /v1/orphans finds keys in Redis that belong to nothing.
import type { OrphanPage } from '@bullpen/contract'
import type { orphansQuerySchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'

export function findOrphans({ broker, closing }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof orphansQuerySchema>>): Promise<OrphanPage> => {
    // When the API shuts down, the caller gets a cursor with which another process continues.
    const { orphans, examined, next } = await broker.orphans.search(query.cursor, closing)
    return { orphans: [...orphans], examined, ...(next !== undefined && { next }) }
  }
}
