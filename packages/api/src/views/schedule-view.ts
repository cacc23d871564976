// Converts schedules to the form that the API returns.
import { formatDuration, type ScheduleSync, type ScheduleView } from '@bullpen/contract'
import { nextTicks, optionalTime, schedulePath, timeText } from '@bullpen/contract/internal'
import { type ScheduleChange, type ScheduleRecord, type ScheduleState, troublesOf } from '@bullpen/engine/internal'

/** `next` is how many of the next ticks to show. */
export function scheduleView(state: ScheduleState, next: number): ScheduleView {
  const { record, lastStatus, now } = state
  const { paused, lastRun, template, overlap, catchUp, jitterMs } = record
  // A tick that is due but not yet handled is still a next tick.
  const ticks = paused === undefined && next > 0 ? nextTicks(record.cadence, record.cursor, next) : []
  return {
    name: record.name,
    task: template.task,
    queue: record.queue,
    input: template.input,
    ...cadenceView(record),
    overlap,
    catchUp,
    ...(jitterMs === 0 ? {} : { jitter: formatDuration(jitterMs) }),
    ...(record.call as Partial<ScheduleView>),
    source: record.source,
    status: paused === undefined ? 'active' : 'paused',
    ...(paused === undefined ? {} : { pausedAt: timeText(paused.at), pausedBy: paused.by }),
    createdAt: timeText(record.createdAt),
    changedAt: timeText(record.changedAt),
    changedBy: record.changedBy,
    nextTicks: ticks.map(timeText),
    waiting: record.waiting.map(timeText),
    // JSON leaves undefined fields out.
    lastRun: lastRun && {
      id: lastRun.id,
      tick: timeText(lastRun.tick),
      at: timeText(lastRun.at),
      status: lastStatus,
    },
    runs: record.runs,
    skipped: record.skipped,
    ...optionalTime('missedAt', record.missedAt),
    trouble: troublesOf({ record, lastStatus, now }).map(({ since, ...each }) => ({ ...each, since: timeText(since) })),
    links: { self: schedulePath(record.name) },
  }
}

function cadenceView({ cadence }: ScheduleRecord): Pick<ScheduleView, 'cron' | 'timeZone' | 'every' | 'offset'> {
  if ('cron' in cadence) return cadence
  const { everyMs, offsetMs } = cadence
  return { every: formatDuration(everyMs), ...(offsetMs === 0 ? {} : { offset: formatDuration(offsetMs) }) }
}

export function syncView(changes: readonly ScheduleChange[], dryRun: boolean): ScheduleSync {
  return { dryRun, changes: changes.map(({ fields, ...change }) => ({ ...change, fields: [...fields] })) }
}
