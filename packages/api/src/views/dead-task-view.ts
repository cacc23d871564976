// Converts counts of dead tasks, and requests to retry or delete them, to the form that the API returns.
import type { DeadTaskFilter, DeadTaskPreview, DeadTaskRequest, QueueStats } from '@bullpen/contract'
import { optionalTime, timeText } from '@bullpen/contract/internal'
import type { DeadFilter, DeadProgress, FingerprintCount } from '@bullpen/engine/internal'

export function deadRequestView({ request, changed, doneAt, stoppedBy }: DeadProgress): DeadTaskRequest {
  const { id, action, filter, rate, by, counted, at } = request
  return {
    id,
    action,
    ...filterView(filter),
    rate,
    by,
    status: statusOf({ doneAt, stoppedBy }),
    ...counted,
    changed,
    requestedAt: timeText(at),
    ...optionalTime('doneAt', doneAt),
    ...(stoppedBy !== undefined && { stoppedBy }),
    links: { self: `/v1/dead-tasks/requests/${id}` },
  }
}

function statusOf({ doneAt, stoppedBy }: Pick<DeadProgress, 'doneAt' | 'stoppedBy'>): DeadTaskRequest['status'] {
  if (doneAt === undefined) return 'pending'
  return stoppedBy === undefined ? 'done' : 'stopped'
}

/** Reads a filter from a request, whose times are texts. */
export function deadFilter({
  endedFrom,
  endedUntil,
  ...filter
}: { readonly [K in keyof DeadTaskFilter]: DeadTaskFilter[K] | undefined }): DeadFilter {
  return {
    ...filter,
    endedFrom: endedFrom && Date.parse(endedFrom),
    endedUntil: endedUntil && Date.parse(endedUntil),
  } as DeadFilter
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
