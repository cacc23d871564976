// Writes events into the log: one line where an attempt starts, one where it ends, with the same fields everywhere.
import type { Log, TaskEvent } from '@bullpen/contract'
import type { EventSink } from '@bullpen/engine'
import type { LogField } from './log-fields.ts'

type Level = keyof Log
type Fields = Readonly<Partial<Record<LogField, unknown>>>
type EventOf<E extends TaskEvent['event']> = Extract<TaskEvent, { readonly event: E }>

const LEVELS = ['debug', 'info', 'warn', 'error'] as const satisfies readonly Level[]

/** Levels are asked for once, so that a line that is not wanted costs a comparison: set the log's level before. */
export function logEvents(log: Log & { isLevelEnabled(level: string): boolean }): EventSink {
  const enabled = Object.fromEntries(LEVELS.map((level) => [level, log.isLevelEnabled(level)])) as Record<
    Level,
    boolean
  >
  return (event) => {
    const level = levelOf(event)
    if (!enabled[level]) return
    log[level](fieldsOf(event), messageOf(event))
  }
}

/** Two lines a task at info cost a quarter of the throughput of short tasks: theirs stay at debug. */
function levelOf(event: TaskEvent): Level {
  switch (event.event) {
    case 'task.enqueued':
      return 'debug'
    case 'task.cancelled':
      return 'info'
    case 'attempt.started':
      return event.kind === 'short' ? 'debug' : 'info'
    case 'attempt.ended':
      return levelOfEnd(event)
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
  if (verdict === 'retrying' || verdict === 'expired' || verdict === 'lost') return 'warn'
  return state === 'DONE_SUCCESS' && kind === 'short' ? 'debug' : 'info'
}

function fieldsOf(event: TaskEvent): Fields {
  switch (event.event) {
    case 'task.enqueued':
    case 'task.cancelled':
    case 'task.expired':
      return { task: event.task, id: event.id, queue: event.queue }
    case 'slots.restarted':
      return { queue: event.queue, slots: event.slots, afterMs: event.afterMs }
    case 'attempt.started':
      return { ...aboutAttempt(event), waitedMs: event.waitedMs }
    case 'attempt.ended':
      return {
        ...aboutAttempt(event),
        state: event.state,
        reason: event.reason,
        code: event.code,
        verdict: event.verdict,
        durationMs: event.durationMs,
        delayMs: event.delayMs,
        // pino writes no undefined fields
        err: event.state === 'DONE_SUCCESS' ? undefined : event.error,
      }
    case 'attempt.late':
      return { ...aboutAttempt(event), overrunMs: event.overrunMs }
    case 'isolate.replaced':
      return { isolation: event.isolation, isolate: event.isolate, cause: event.cause }
    case 'event_loop.stalled':
      return fieldsOfBlock(event)
    case 'pool.state':
      return { queue: event.queue, from: event.from, to: event.to }
  }
}

function fieldsOfBlock({
  task,
  id,
  fencingToken,
  attempt,
  location,
  stalledMs,
}: EventOf<'event_loop.stalled'>): Fields {
  return { task, id, fencingToken, attempt, location, stalledMs: Math.round(stalledMs) }
}

function aboutAttempt({
  task,
  id,
  queue,
  fencingToken,
  attempt,
  correlationId,
}: EventOf<'attempt.started' | 'attempt.ended' | 'attempt.late'>): Fields {
  return { task, id, queue, fencingToken, attempt, correlationId }
}

function messageOf(event: TaskEvent): string {
  switch (event.event) {
    case 'task.enqueued':
      return 'task enqueued'
    case 'task.cancelled':
      return 'a task is cancelled that nobody ran'
    case 'attempt.started':
      return 'attempt started'
    case 'attempt.ended':
      return `attempt ended ${event.state}, task ${event.verdict}`
    case 'attempt.late':
      return 'handler came back after its attempt had ended; its result is dropped'
    case 'isolate.replaced':
      return 'an isolate is replaced'
    case 'task.expired':
      return 'a task expired: it waited longer than its queue timeout'
    case 'slots.restarted':
      return 'workers go on after fetching had failed'
    case 'event_loop.stalled':
      return 'the event loop was blocked, and turns again'
    case 'pool.state':
      return `pool is ${event.to}`
  }
}
