// Converts a cancel by filter to the form that the API returns.
import type { Cancellation, CancelPreview } from '@bullpen/contract'
import { optionalTime, timeText } from '@bullpen/contract/internal'
import type { CancelFilter, CancelProgress } from '@bullpen/engine/internal'

export function cancellationView({ rule, ended, doneAt }: CancelProgress): Cancellation {
  return {
    id: rule.id,
    ...filterView(rule),
    by: rule.by,
    status: doneAt === undefined ? 'pending' : 'done',
    ended,
    requestedAt: timeText(rule.at),
    ...optionalTime('doneAt', doneAt),
    links: { self: `/v1/cancels/${rule.id}` },
  }
}

export function filterView({ queue, task, tag, before }: CancelFilter): Omit<CancelPreview, 'matching' | 'exact'> {
  return {
    queue,
    ...(task === undefined ? {} : { task }),
    ...(tag === undefined ? {} : { tag }),
    enqueuedUntil: timeText(before),
  }
}
