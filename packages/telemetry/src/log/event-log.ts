// Writes task events to the log. Each attempt gets one line when it starts and another when its commit is confirmed or refused.
// Both lines have the same fields.
import {
  ATTEMPT_STATE_LABELS,
  type CommitRefusal,
  type EndReason,
  type Log,
  POOL_STATE_LABELS,
  type RefusedBy,
  type TaskEvent,
} from '@bullpen/contract'
import type { EventSink } from '@bullpen/engine'
import type { Clock } from '@bullpen/engine/internal'
import { IS_FAILURE } from '../failures.ts'
import { failureLimit } from './failure-limit.ts'
import type { LogField } from './log-fields.ts'

type Level = keyof Log
type Fields = Readonly<Partial<Record<LogField, unknown>>>
type EventOf<E extends TaskEvent['event']> = Extract<TaskEvent, { readonly event: E }>

/**
 * Creates an event sink that writes to `log`. The level is read for each event, because a command may change it. If many short attempts of
 * a task fail within a second, only the first lines keep their level. The others have the level debug, like those of successes.
 */
export function logEvents(
  log: Log & { isLevelEnabled(level: string): boolean },
  clock: Pick<Clock, 'monotonic'>,
): EventSink {
  const mayWrite = failureLimit(clock)
  return (event) => {
    const full = levelOf(event)
    const level =
      isShortEnd(event) && full !== 'debug' && !mayWrite(`${full} ${event.queue} ${event.task}`) ? 'debug' : full
    if (log.isLevelEnabled(level)) log[level](fieldsOf(event), messageOf(event))
  }
}

function isShortEnd(event: TaskEvent): event is EventOf<'attempt.ended'> {
  return event.event === 'attempt.ended' && event.kind === 'short'
}

/**
 * Returns the level of an event's line. Writing two lines per task reduces the throughput of short tasks by a quarter, so short
 * tasks are logged at level debug.
 */
function levelOf(event: TaskEvent): Level {
  switch (event.event) {
    case 'task.enqueued':
    case 'task.refused':
      return 'debug'
    case 'task.cancelled':
      return 'info'
    case 'task.dead':
      return 'error'
    case 'attempt.started':
      return event.kind === 'short' ? 'debug' : 'info'
    case 'attempt.ended':
      return levelOfEnd(event)
    case 'attempt.commit_refused':
    case 'attempt.late':
    case 'isolate.replaced':
    case 'task.expired':
    case 'slots.restarted':
    case 'event_loop.stalled':
      return 'warn'
    case 'pool.state':
      return event.to === 'RECOVER_ERR' || event.to === 'TERMINATE_TIMEOUT' ? 'error' : 'info'
  }
}

function levelOfEnd({ state, verdict, kind }: EventOf<'attempt.ended'>): Level {
  if (state === 'RECOVER_ERR' || verdict === 'dead') return 'error'
  // A worker that cannot run a task leaves it to another one.
  if (verdict === 'retrying' || verdict === 'expired' || (verdict === 'snoozed' && state === 'DONE_ERROR'))
    return 'warn'
  return state === 'DONE_SUCCESS' && kind === 'short' ? 'debug' : 'info'
}

function fieldsOf(event: TaskEvent): Fields {
  switch (event.event) {
    case 'task.enqueued':
    case 'task.cancelled':
    case 'task.expired':
      return { task: event.task, id: event.id, queue: event.queue }
    case 'task.refused':
      return { task: event.task, queue: event.queue, limit: event.limit }
    case 'task.dead':
      return { task: event.task, id: event.id, queue: event.queue, reason: event.reason }
    case 'slots.restarted':
      return { queue: event.queue, slots: event.slots, afterMs: rounded(event.afterMs) }
    case 'attempt.started':
      return { ...aboutAttempt(event), waitedMs: rounded(event.waitedMs) }
    case 'attempt.ended':
      return {
        ...aboutAttempt(event),
        state: event.state,
        reason: event.reason,
        code: event.code,
        verdict: event.verdict,
        durationMs: rounded(event.durationMs),
        delayMs: rounded(event.delayMs),
        err: hasFailed(event) ? event.error : undefined,
      }
    case 'attempt.commit_refused':
      return {
        ...aboutAttempt(event),
        state: event.state,
        reason: event.reason,
        code: event.code,
        verdict: event.verdict,
        refusal: event.refusal,
        durationMs: rounded(event.durationMs),
        err: hasFailed(event) ? event.error : undefined,
      }
    case 'attempt.late':
      return { ...aboutAttempt(event), overrunMs: rounded(event.overrunMs) }
    case 'isolate.replaced':
      return { isolation: event.isolation, isolate: event.isolate, cause: event.cause }
    case 'event_loop.stalled':
      return fieldsOfStall(event)
    case 'pool.state':
      return { queue: event.queue, from: event.from, to: event.to }
  }
}

function fieldsOfStall({
  task,
  id,
  fencingToken,
  attempt,
  location,
  stalledMs,
}: EventOf<'event_loop.stalled'>): Fields {
  return { task, id, fencingToken, attempt, location, stalledMs: rounded(stalledMs) }
}

function aboutAttempt({
  task,
  id,
  queue,
  fencingToken,
  attempt,
  correlationId,
}: EventOf<'attempt.started' | 'attempt.ended' | 'attempt.commit_refused' | 'attempt.late'>): Fields {
  return { task, id, queue, fencingToken, attempt, correlationId }
}

/**
 * Returns whether the attempt failed. An interrupted, snoozed or cancelled attempt has not failed, so its line does not include
 * an error.
 */
function hasFailed({ state, reason }: EventOf<'attempt.ended' | 'attempt.commit_refused'>): boolean {
  return state !== 'DONE_SUCCESS' && IS_FAILURE[reason ?? 'declared']
}

/** Rounds to whole milliseconds. An undefined value stays undefined, because pino omits undefined fields. */
function rounded(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.round(ms)
}

function messageOf(event: TaskEvent): string {
  switch (event.event) {
    case 'task.enqueued':
      return 'task enqueued'
    case 'task.refused':
      return `task ${event.action}: ${REFUSED_BY[event.limit]}`
    case 'task.cancelled':
      return 'task cancelled before it started'
    case 'task.expired':
      return 'task expired before it started: queue timeout passed'
    case 'task.dead':
      return event.reason === 'process_lost'
        ? 'task is dead: its worker died too often'
        : 'task is dead: a task that it waited for has failed'
    case 'attempt.started':
      return 'attempt started'
    case 'attempt.ended':
      return messageOfEnd(event)
    case 'attempt.commit_refused':
      return `result dropped: ${REFUSALS[event.refusal]}`
    case 'attempt.late':
      return 'handler returned after its attempt had ended: result dropped'
    case 'isolate.replaced':
      return `isolate replaced: ${event.cause}`
    case 'slots.restarted':
      return 'slots restarted after fetching had failed'
    case 'event_loop.stalled':
      return 'event loop stalled'
    case 'pool.state':
      return `pool ${POOL_STATE_LABELS[event.to]}`
  }
}

function messageOfEnd({ state, verdict, reason }: EventOf<'attempt.ended'>): string {
  switch (verdict) {
    case 'completed':
      return 'task completed'
    case 'cancelled':
      return 'task cancelled'
    case 'expired':
      return 'task expired before it started'
    case 'snoozed':
      return state === 'DONE_ERROR' ? 'task left to another worker: this one cannot run it' : 'task snoozed'
    case 'requeued':
      return `task requeued: ${REQUEUE_CAUSES[reason ?? ''] ?? 'attempt interrupted'}`
    case 'retrying':
      return `attempt ${ATTEMPT_STATE_LABELS[state]}: task will be retried`
    case 'dead':
      return `attempt ${ATTEMPT_STATE_LABELS[state]}: task is dead`
  }
}

const QUEUE_IS_FULL = 'queue is full'

const REFUSED_BY: Readonly<Record<RefusedBy, string>> = {
  maxTasks: QUEUE_IS_FULL,
  maxBytes: QUEUE_IS_FULL,
  maxAge: QUEUE_IS_FULL,
  maxUnfinishedTasks: 'API key has too many unfinished tasks',
  enqueueRate: 'API key has reached its rate',
}

const REFUSALS: Readonly<Record<CommitRefusal, string>> = {
  lock_lost: 'attempt lost its lock',
  lock_taken: 'another attempt holds the lock',
  task_removed: 'task was removed',
  not_active: 'task is not active',
  has_children: 'job has children that have not completed',
  overridden: 'worker committed a different verdict',
  store_error: 'Redis returned an error for the commit',
}

const REQUEUE_CAUSES: Readonly<Record<string, string>> = {
  drain: 'worker is draining',
  parent_closed: 'pool was closed',
  slot_stopped: 'slot was stopped',
  process_lost: 'worker ends because its state is unknown',
  rate_limited: 'handler is rate limited',
} satisfies Partial<Record<EndReason, string>>
