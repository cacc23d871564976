// Defines where a search for orphans continues, and the cursor in which a caller keeps that position.
//
// A search first visits the keys of each server, and then the entries of each queue's structures, in the order of the queues'
// names.
import { BullpenError } from '@bullpen/contract'
import { z } from 'zod'
import { parseJson } from '../codec.ts'

const positionSchema = z.union([
  z.object({
    /** The server: '' for the only one, or a cluster node's host and port. */
    node: z.string(),
    /** The cursor of SCAN. */
    scan: z.string().regex(/^\d{1,20}$/),
  }),
  z.object({
    queue: z.string(),
    /** The index among the structures. */
    structure: z.int().nonnegative(),
    at: z.string().regex(/^\d{1,20}$/),
  }),
])

export type SearchPosition = z.infer<typeof positionSchema>

export function encodePosition(position: SearchPosition): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

/** @throws BullpenError `invalid_cursor`. */
export function decodePosition(cursor: string): SearchPosition {
  const parsed = positionSchema.safeParse(parseJson(Buffer.from(cursor, 'base64url').toString()))
  if (parsed.success) return parsed.data
  throw new BullpenError(
    'invalid_cursor',
    'the cursor does not belong to a search for orphans; send the `next` of the previous page, or no cursor to start again',
  )
}

export function nodeReplaced(node: string): BullpenError {
  return new BullpenError(
    'invalid_cursor',
    `the search has reached the cluster node ${node}, which is no longer a master; search again without a cursor`,
  )
}
