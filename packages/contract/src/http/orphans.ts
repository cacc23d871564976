// Defines how orphaned keys in Redis are listed and deleted over HTTP.
import { z } from 'zod'
import { cursorSchema } from './queries.ts'
import { auditedBy } from './requester.ts'

/**
 * Why a key or an entry is listed:
 *
 * - `no_owner`: what it belongs to does not exist, such as the task of a lock.
 * - `no_expiry`: every key of its kind should expire, and this one never will.
 * - `wrong_type`: it has another Redis type than all keys of its kind.
 * - `unknown_key`: Bullpen does not write such a key.
 * - `unknown_queue`: no process has registered the queue to which it belongs.
 */
export const ORPHAN_REASONS = ['no_owner', 'no_expiry', 'wrong_type', 'unknown_key', 'unknown_queue'] as const

export type OrphanReason = (typeof ORPHAN_REASONS)[number]

const key = z.string().min(1).max(2_000).describe('The Redis key.')
const entry = z
  .string()
  .max(2_000)
  .optional()
  .describe('The element, member or field of the key, if only this entry has no owner.')

export const orphanSchema = z
  .object({
    key,
    entry,
    reason: z.enum(ORPHAN_REASONS).describe('Why the key or the entry is listed.'),
    queue: z.string().optional().describe('The queue to which the key belongs.'),
    kind: z.string().optional().describe('The kind of key, as in the reference, such as `<task>:lock`.'),
    owner: z.string().optional().describe('What keys of this kind belong to, such as `task`.'),
    keys: z.int().optional().describe('How many keys of an unknown queue were found. `key` is then one of them.'),
    certain: z.boolean().describe('Whether the key or the entry can be deleted. Only those without an owner can.'),
  })
  .meta({ id: 'Orphan', description: 'A Redis key, or an entry of one, that belongs to nothing.' })

export type Orphan = z.infer<typeof orphanSchema>

/** The query parameters of GET /v1/orphans. */
export const orphansQuerySchema = z.strictObject({
  cursor: cursorSchema.optional().describe("The previous page's `next`."),
})

export const orphanPageSchema = z
  .object({
    orphans: z.array(orphanSchema),
    examined: z.int().describe('How many keys and entries of the namespace this request has examined.'),
    next: z.string().optional().describe('The cursor of the next page. Absent at the end of the search.'),
  })
  .meta({ id: 'OrphanPage' })

export type OrphanPage = z.infer<typeof orphanPageSchema>

/** The maximum number of orphans in one request to delete them. */
export const MAX_DELETED_ORPHANS = 200

const orphanRefSchema = z.strictObject({ key, entry })

/** Names a key, or an entry of a key. */
export interface OrphanRef {
  readonly key: string
  readonly entry?: string | undefined
}

/** The body of POST /v1/orphans/delete. */
export const deleteOrphansSchema = z
  .strictObject({
    orphans: z
      .array(orphanRefSchema)
      .min(1)
      .max(MAX_DELETED_ORPHANS)
      .describe('The keys and entries to delete, as `GET /v1/orphans` has listed them.'),
    by: auditedBy,
  })
  .meta({ id: 'DeleteOrphans' })

/** Names the orphans to delete. */
export interface DeleteOrphansRequest {
  readonly orphans: readonly OrphanRef[]
  /** Who sends the request, for the audit log. */
  readonly by?: string | undefined
}

export const orphansDeletedSchema = z
  .object({
    deleted: z.array(z.object({ key, entry })).describe('What was deleted.'),
    kept: z.array(z.object({ key, entry })).describe('What was kept, because it has an owner or does not exist.'),
  })
  .meta({ id: 'OrphansDeleted' })

export type OrphansDeleted = z.infer<typeof orphansDeletedSchema>
