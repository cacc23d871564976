// How a task looks from outside: the broker's record as the API's JSON.
import type { AttemptRecord, TaskRecord, TaskView } from '@bullpen/contract'
import { linksOf } from './links.ts'
import { optionalTime, timeText } from './times.ts'

export function viewOf(record: TaskRecord): TaskView {
  const newest = record.attempts.at(-1)
  return {
    id: record.id,
    task: record.task,
    version: record.version,
    queue: record.queue,
    status: record.status,
    ...newestAttempt(record, newest),
    fencingToken: record.fencingToken,
    attemptsMade: record.attemptsMade,
    maxAttempts: record.maxAttempts,
    input: record.input,
    ...(record.status === 'completed' ? { output: record.output } : {}),
    ...(newest === undefined || newest.state === 'DONE_SUCCESS' ? {} : { error: errorOf(newest) }),
    ...(record.progress === undefined ? {} : { progress: progressOf(record.progress) }),
    ...(record.steps === undefined ? {} : { steps: [...record.steps] }),
    meta: { ...record.meta },
    tags: [...record.tags],
    ...(record.correlationId === undefined ? {} : { correlationId: record.correlationId }),
    enqueuedAt: timeText(record.enqueuedAt),
    ...optionalTime('dueAt', record.dueAt),
    ...optionalTime('startedAt', record.startedAt),
    ...optionalTime('endedAt', record.endedAt),
    attempts: record.attempts.map((end) => ({
      ...end,
      startedAt: timeText(end.startedAt),
      endedAt: timeText(end.endedAt),
    })),
    links: linksOf(record.id, record.queue, record.status),
  }
}

/** The attempt that runs has no end yet, so the history's newest is the one before it. */
function newestAttempt({ status }: TaskRecord, newest: AttemptRecord | undefined): Pick<TaskView, 'state' | 'reason'> {
  if (status === 'active') return { state: 'IN_PROCESS' }
  if (newest === undefined) return {}
  return { state: newest.state, ...(newest.reason === undefined ? {} : { reason: newest.reason }) }
}

/** A declared failure has its own code; every other end has a reason. */
function errorOf({ state, code, reason, message }: AttemptRecord): NonNullable<TaskView['error']> {
  return { code: code ?? reason ?? state.toLowerCase(), message: message ?? '' }
}

function progressOf({ fraction, note }: NonNullable<TaskRecord['progress']>): NonNullable<TaskView['progress']> {
  return { fraction, ...(note === undefined ? {} : { note }) }
}
