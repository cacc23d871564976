// Divides a list of schedules into pages. A cursor is the name and the queue of the last schedule of a page, so that schedules that are
// stored or deleted between two pages neither hide other schedules nor repeat them.
import { BullpenError } from '@bullpen/contract'
import type { ScheduleState } from '@bullpen/engine/internal'
import { z } from 'zod'

const cursorSchema = z.tuple([z.string(), z.string()])

type Place = z.infer<typeof cursorSchema>

export interface SchedulePage {
  readonly page: readonly ScheduleState[]
  /** The cursor of the next page. Undefined if this page is the last one. */
  readonly next: string | undefined
}

/** `states` are in the order of their names. @throws BullpenError `invalid_cursor`. */
export function pageOfSchedules(
  states: readonly ScheduleState[],
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): SchedulePage {
  const after = cursor === undefined ? undefined : decode(cursor)
  const left = states.toSorted(byPlace).filter((state) => after === undefined || compare(placeOf(state), after) > 0)
  const page = left.slice(0, limit)
  const last = page.at(-1)
  const hasMore = left.length > page.length && last !== undefined
  return { page, next: hasMore ? Buffer.from(JSON.stringify(placeOf(last))).toString('base64url') : undefined }
}

/** Names are unique, except for a moment when two processes store a schedule of the same name in two queues. */
function placeOf({ record }: ScheduleState): Place {
  return [record.name, record.queue]
}

function byPlace(one: ScheduleState, other: ScheduleState): number {
  return compare(placeOf(one), placeOf(other))
}

function compare([name, queue]: Place, [otherName, otherQueue]: Place): number {
  if (name !== otherName) return name < otherName ? -1 : 1
  if (queue !== otherQueue) return queue < otherQueue ? -1 : 1
  return 0
}

function decode(cursor: string): Place {
  try {
    return cursorSchema.parse(JSON.parse(Buffer.from(cursor, 'base64url').toString()))
  } catch {
    throw new BullpenError(
      'invalid_cursor',
      'the cursor does not belong to a listing of schedules; send the `next` of the previous page, or no cursor to start again',
    )
  }
}
