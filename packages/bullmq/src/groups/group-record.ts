// Decodes a group from the fields of its hash.
import type { GroupId, GroupResult, MemberEnd } from '@bullpen/contract'
import { MEMBER_ENDS } from '@bullpen/contract/internal'
import type { Group } from '@bullpen/engine/internal'
import { END_LETTERS } from '../groups/end-letters.ts'
import { pairsOf } from '../scripts/pairs.ts'

/** Returns the group, or undefined if there are no fields. `flat` contains each name, followed by its value. */
export function groupOf(id: GroupId, flat: readonly string[]): Group | undefined {
  if (flat.length === 0) return undefined
  const fields = new Map(pairsOf(flat))
  const text = (name: string): string => fields.get(name) ?? ''
  const number = (name: string): number => Number(fields.get(name) ?? 0)
  const optional = (name: string): number | undefined => (fields.has(name) ? number(name) : undefined)
  const cancelledAt = optional('cancelledAt')
  const endedAt = optional('endedAt')
  return {
    id,
    state: text('state') as Group['state'],
    by: text('by'),
    // Clients have stored other values, with which the scripts continue, and which responses do not accept.
    onError: text('onError') === 'cancel' ? 'cancel' : 'continue',
    createdAt: number('createdAt'),
    timeoutAt: number('timeoutAt'),
    keepMs: number('keepMs'),
    count: number('count'),
    ends: Object.fromEntries(MEMBER_ENDS.map((end) => [end, number(END_LETTERS[end])])) as Record<MemberEnd, number>,
    queues: text('queues').split(' ').filter(Boolean),
    sealedAt: optional('sealedAt'),
    cancelled:
      cancelledAt === undefined
        ? undefined
        : {
            at: cancelledAt,
            reason: text('cancelReason') as NonNullable<Group['cancelled']>['reason'],
            by: text('cancelledBy'),
          },
    ended: endedAt === undefined ? undefined : { at: endedAt, result: text('result') as GroupResult },
  }
}

/** What a request has added to a group, and a digest of the request. */
export interface AddedRequest {
  /** The number of the first member. */
  readonly start: number
  readonly digest: string
}

/** Decodes the record of a request that has added members, which the script add-members stores. */
export function addedRequestOf(text: string): AddedRequest {
  const space = text.indexOf(' ')
  return { start: Number(text.slice(0, space)), digest: text.slice(space + 1) }
}

/** The end with each code of the members' bits. Code 0 stands for a member that has not ended. */
export const END_CODES: readonly (MemberEnd | undefined)[] = [undefined, ...MEMBER_ENDS]

/**
 * Returns the numbers of the members that have not ended, by queue. `ends` contains three bits for each member, and `positions` four.
 * Missing bits are 0.
 */
export function unfinishedMembers(
  { count, queues }: Group,
  ends: Uint8Array | null,
  positions: Uint8Array | null,
): ReadonlyMap<string, readonly number[]> {
  const found = queues.map((): number[] => [])
  for (let member = 0; member < count; member++) {
    if (numberAt(ends, member, 3) === 0) found[numberAt(positions, member, 4)]?.push(member)
  }
  return new Map(queues.map((queue, at) => [queue, found[at] ?? []]))
}

/** Returns an unsigned number from a BITFIELD, in which the first bit of each byte is the highest one. */
function numberAt(bytes: Uint8Array | null, at: number, width: number): number {
  let value = 0
  for (let bit = at * width; bit < (at + 1) * width; bit++) {
    value = value * 2 + (((bytes?.[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1)
  }
  return value
}
