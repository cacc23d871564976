// Decides which follow-ups the end of a group releases. On Redis, a script makes the same decision (bullmq, store/lua/includes/group.lua).
import type { FinalStatus, GroupResult } from '@bullpen/contract'
import type { StoredFollowUp } from '@bullpen/contract/internal'
import { releasedBy } from '../follow-ups/released.ts'
import type { ReleasedFollowUp } from '../follow-ups/template.ts'
import type { Group } from '../ports/broker/groups.ts'

/** A group with this result releases what a task with this status would release. */
const STATUS_OF = { completed: 'completed', failed: 'dead', cancelled: 'cancelled' } as const satisfies Record<
  GroupResult,
  FinalStatus
>

/** Returns the follow-ups that are enqueued when the group has ended. A group ends once. */
export function groupReleases(
  { id, createdAt }: Pick<Group, 'id' | 'createdAt'>,
  followUps: readonly StoredFollowUp[],
  result: GroupResult,
): readonly ReleasedFollowUp[] {
  const end = { source: id, timestamp: createdAt, end: 1, next: '' }
  return releasedBy(followUps, STATUS_OF[result]).map((each) => ({ ...end, ...each }))
}
