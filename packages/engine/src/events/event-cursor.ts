// Encodes a reader's position in the streams of one queue or several.
import { BullpenError } from '@bullpen/contract'
import { isEventId } from './event-ids.ts'

/** The id up to which each queue's stream was read. */
export type Positions = ReadonlyMap<string, string>

export interface CursorOptions {
  /** Whether the cursor names the queue even if there is only one, because the reader's queues may change. Defaults to false. */
  readonly named?: boolean
}

/** Returns the event's id if there is one queue, and otherwise each queue's id, such as `cpu:1700000000000-0,io:1700000000001-3`. */
export function encodeCursor(positions: Positions, { named = false }: CursorOptions = {}): string {
  const [only] = positions.values()
  if (!named && positions.size === 1 && only !== undefined) return only
  return [...positions].map(([queue, id]) => `${queue}:${id}`).join(',')
}

/**
 * Decodes a cursor for these queues. A queue that the cursor does not contain has no position.
 *
 * @throws BullpenError `invalid_cursor`.
 */
export function decodeCursor(
  cursor: string,
  queues: readonly string[],
  { named = false }: CursorOptions = {},
): Positions {
  const [only] = queues
  if (!named && queues.length === 1 && only !== undefined && isEventId(cursor)) return new Map([[only, cursor]])
  const positions = cursor.split(',').map((part) => {
    const colon = Math.max(part.lastIndexOf(':'), 0)
    return [part.slice(0, colon), part.slice(colon + 1)] as const
  })
  const known = positions.filter(([queue]) => queues.includes(queue))
  // A position without a queue belongs to another kind of stream. Without any position, the reader would miss events.
  const isMalformed = positions.some(([queue, id]) => queue === '' || !isEventId(id))
  if (isMalformed || known.length === 0) {
    throw new BullpenError(
      'invalid_cursor',
      'the Last-Event-ID is not the id of an event of this stream; send the last id that you received, or none to start again',
    )
  }
  return new Map(known)
}
