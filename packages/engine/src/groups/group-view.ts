// Converts groups and their members to the form that the API and clients return.
import { type GroupResults, type GroupView, isFinal, type MemberResult } from '@bullpen/contract'
import { groupPath, optionalTime, taskView, timeText } from '@bullpen/contract/internal'
import type { Group, GroupMember, GroupMembers } from '../ports/broker/groups.ts'
import { endedMembers } from './group-state.ts'

export function groupView(group: Group): GroupView {
  const { id, state, count, ends, queues, onError, by, cancelled } = group
  const ended = endedMembers(group)
  const self = groupPath(id)
  return {
    id,
    state,
    ...(group.ended === undefined ? {} : { result: group.ended.result }),
    count,
    ended,
    progress: state === 'ended' ? 1 : count === 0 ? 0 : ended / count,
    statuses: { ...ends },
    queues: [...queues],
    onError,
    by,
    createdAt: timeText(group.createdAt),
    timeoutAt: timeText(group.timeoutAt),
    ...optionalTime('sealedAt', group.sealedAt),
    ...optionalTime('endedAt', group.ended?.at),
    ...(cancelled === undefined
      ? {}
      : { cancelledAt: timeText(cancelled.at), cancelReason: cancelled.reason, cancelledBy: cancelled.by }),
    links: { self, results: `${self}/results`, cancel: `${self}/cancel` },
  }
}

/** `from` is the number of the page's first member. */
export function groupResults({ group, members }: GroupMembers, from: number): GroupResults {
  const next = from + members.length
  return {
    results: members.map(memberResult),
    ...(members.length > 0 && next < group.count ? { next } : {}),
  }
}

function memberResult({ member, id, status, record }: GroupMember): MemberResult {
  const hasEnded = status === 'removed' || isFinal(status)
  if (record === undefined) return { member, id, status, ...(hasEnded && { deleted: true as const }) }
  // A dead member that was retried may have ended again in another way. Its first end counts.
  const isSame = record.status === status
  const { error } = taskView(record)
  return {
    member,
    id,
    task: record.task,
    status,
    ...(isSame && status === 'completed' && { output: record.output }),
    ...(isSame && hasEnded && error !== undefined && { error }),
  }
}
