// Bounds a page of a group's members by the size of their outputs, because each output may take megabytes.
import type { GroupMember } from '../ports/broker/groups.ts'

/** A page ends with the member whose output brings the outputs of the page to this many characters of JSON. */
const MAX_OUTPUT = 1_048_576
/** How many members are looked up at a time, and are therefore in memory beyond that. */
const LOOK_UPS = 16

/** Looks up the members of a page in order, until there are `count` of them or their outputs are too large for more. */
export async function membersPage(
  count: number,
  lookUp: (index: number) => Promise<GroupMember>,
): Promise<readonly GroupMember[]> {
  const members: GroupMember[] = []
  let size = 0
  for (let from = 0; from < count; from += LOOK_UPS) {
    const indexes = Array.from({ length: Math.min(LOOK_UPS, count - from) }, (_, i) => from + i)
    for (const member of await Promise.all(indexes.map(lookUp))) {
      if (size >= MAX_OUTPUT) return members
      members.push(member)
      size += JSON.stringify(member.record?.output ?? null).length
    }
  }
  return members
}
