// Converts a broker's record of a task to the JSON that the API returns.
import type { AttemptRecord } from '../../task/attempt-record.ts'
import { ATTEMPT_STATE_LABELS } from '../../task/states.ts'
import type { ExplainedTask, TaskRecord, TaskRetry } from '../../task/task-record.ts'
import { optionalTime, timeText } from '../times.ts'
import { taskLinks } from './links.ts'
import type { AttemptView, TaskView } from './task-view.ts'
import { waitView } from './wait-view.ts'

export function taskView(record: TaskRecord | ExplainedTask): TaskView {
  const error = taskError(record)
  return {
    id: record.id,
    task: record.task,
    version: record.version,
    queue: record.queue,
    status: record.status,
    attemptsMade: record.attemptsMade,
    maxAttempts: record.maxAttempts,
    priority: record.priority,
    fencingToken: record.fencingToken,
    input: record.input,
    ...(record.status === 'completed' ? { output: record.output } : {}),
    ...(error === undefined ? {} : { error }),
    ...(record.progress === undefined ? {} : { progress: progressView(record.progress) }),
    ...(record.steps === undefined ? {} : { steps: [...record.steps] }),
    meta: { ...record.meta },
    tags: [...record.tags],
    ...(record.correlationId === undefined ? {} : { correlationId: record.correlationId }),
    ...(record.traceContext === undefined ? {} : { traceContext: record.traceContext }),
    ...(record.concurrencyKey === undefined ? {} : { concurrencyKey: record.concurrencyKey }),
    ...(record.waitsFor === undefined ? {} : { waitsFor: waitView(record.waitsFor, record) }),
    enqueuedAt: timeText(record.enqueuedAt),
    ...optionalTime('dueAt', record.dueAt),
    ...optionalTime('startedAt', record.startedAt),
    ...optionalTime('endedAt', record.endedAt),
    attempts: record.attempts.map(attemptView),
    ...(record.fingerprint === undefined ? {} : { fingerprint: record.fingerprint }),
    ...(record.retries === undefined ? {} : { retries: record.retries.map(retryView) }),
    ...(record.followUpOf === undefined ? {} : { followUpOf: record.followUpOf }),
    ...(record.followUps === undefined ? {} : { followUps: record.followUps.map((each) => ({ ...each })) }),
    ...(record.group === undefined ? {} : { group: { ...record.group } }),
    ...(record.compensations === undefined ? {} : { compensations: record.compensations.map((each) => ({ ...each })) }),
    ...optionalTime('compensatedAt', record.compensatedAt),
    ...(record.retryOf === undefined ? {} : { retryOf: record.retryOf }),
    links: taskLinks(record.id),
  }
}

function retryView({ at, by, copy }: TaskRetry): NonNullable<TaskView['retries']>[number] {
  return { at: timeText(at), by, ...(copy === undefined ? {} : { copy }) }
}

function attemptView(record: AttemptRecord): AttemptView {
  const { attempt, fencingToken, counted, state, by, worker, slot, startedAt, endedAt } = record
  const error = attemptError(record)
  return {
    attempt,
    fencingToken,
    counted,
    outcome: ATTEMPT_STATE_LABELS[state],
    state,
    ...(error === undefined ? {} : { error }),
    ...(by === undefined ? {} : { by }),
    worker,
    ...(slot === undefined ? {} : { slot }),
    startedAt: timeText(startedAt),
    endedAt: timeText(endedAt),
  }
}

/**
 * Returns the task's error. A task that was requeued, snoozed or cancelled has not failed and therefore has no error, whereas a
 * dead task always has one. The records of earlier attempts keep their errors.
 */
function taskError({ status, attempts }: Pick<TaskRecord, 'status' | 'attempts'>): TaskView['error'] {
  const newest = attempts.at(-1)
  if (newest === undefined) return undefined
  return status === 'dead' || isFailure(newest) ? attemptError(newest) : undefined
}

function isFailure({ state }: AttemptRecord): boolean {
  return state === 'DONE_ERROR' || state === 'RECOVER_ERR' || state === 'TERMINATED_TIMEOUT'
}

/** Returns the attempt's error. A declared failure has its own code. Every other way to end has a reason. */
function attemptError({ state, code, reason, message }: AttemptRecord): AttemptView['error'] {
  if (state === 'DONE_SUCCESS') return undefined
  return { code: code ?? reason ?? state.toLowerCase(), message: message ?? '' }
}

function progressView({ fraction, note }: NonNullable<TaskRecord['progress']>): NonNullable<TaskView['progress']> {
  return { fraction, ...(note === undefined ? {} : { note }) }
}
