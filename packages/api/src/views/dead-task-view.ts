// Converts counts of dead tasks, and requests to retry or delete them, to the form that the API returns.
import type { DeadTaskPreview, DeadTaskRequest, QueueStats } from '@bullpen/contract'
import { optionalTime, timeText } from '@bullpen/contract/internal'
import type { DeadFilter, DeadProgress, FingerprintCount } from '@bullpen/engine/internal'

export function deadRequestView({ request, changed, doneAt }: DeadProgress): DeadTaskRequest {
  const { id, action, filter, rate, by, counted, at } = request
  return {
    id,
    action,
    ...filterView(filter),
    rate,
    by,
    status: doneAt === undefined ? 'pending' : 'done',
    ...counted,
    changed,
    requestedAt: timeText(at),
    ...optionalTime('doneAt', doneAt),
    links: { self: `/v1/dead-tasks/requests/${id}` },
  }
}

/** Returns the fields of a filter that are given. */
export function filterView({
  endedFrom,
  endedUntil,
  ...filter
}: DeadFilter): Omit<DeadTaskPreview, 'matching' | 'exact'> {
  return { ...filter, ...optionalTime('endedFrom', endedFrom), ...optionalTime('endedUntil', endedUntil) }
}

export function fingerprintView({
  oldestAt,
  newestAt,
  ...rest
}: FingerprintCount): QueueStats['deadByFingerprint'][number] {
  return { ...rest, oldestAt: timeText(oldestAt), newestAt: timeText(newestAt) }
}
