// A task as the memory broker holds it, and what is told of it.
import {
  type AttemptRecord,
  isFinal,
  type Progress,
  type TaskId,
  type TaskRecord,
  type TaskStatus,
} from '@bullpen/contract'
import type { Envelope } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import {
  type CancelCandidate,
  type CancelCause,
  MAX_ATTEMPT_RECORDS,
  statusOfDelayed,
  statusOfEnded,
  storedEnvelope,
  tagsOf,
} from '@bullpen/engine/internal'

/** Where a task is. A dead, a cancelled and an expired one share a place: their last end tells them apart. */
export type Place = 'waiting' | 'active' | 'delayed' | 'completed' | 'failed'

/** Who has taken a task: one for each time that it is taken. */
export interface Owner {
  lockLost(): void
  cancel(cause: CancelCause): void
}

export interface StoredTask {
  readonly id: TaskId
  readonly task: string
  readonly queue: string
  readonly envelope: Envelope
  readonly enqueuedAt: number
  readonly delayMs: number
  readonly maxAttempts: number
  readonly expiresAt: number | undefined
  place: Place
  /** Undefined while it is active: its owner has lost it, and nobody has found it yet. */
  owner: Owner | undefined
  fencingToken: number
  attemptsMade: number
  /** How often the process that had it was lost. */
  deaths: number
  dueAt: number | undefined
  startedAt: number | undefined
  endedAt: number | undefined
  progress: Progress | undefined
  output: unknown
  attempts: readonly AttemptRecord[]
  /** The results of its finished steps, as JSON. */
  readonly steps: Map<string, string>
  /** It ends as soon as nobody runs it any more. */
  cancelRequested: CancelCause | undefined
  /** The cancel by filter that has asked for it. */
  cancelledBy: string | undefined
}

export function storedTask(task: NewTask): StoredTask {
  const { id, queue, enqueuedAt, delayMs = 0, maxAttempts, expiresAt } = task
  return {
    id,
    task: task.task,
    queue,
    envelope: asJson(storedEnvelope(task)),
    enqueuedAt,
    delayMs,
    maxAttempts,
    expiresAt,
    place: 'waiting',
    owner: undefined,
    fencingToken: 0,
    attemptsMade: 0,
    deaths: 0,
    dueAt: undefined,
    startedAt: undefined,
    endedAt: undefined,
    progress: undefined,
    output: undefined,
    attempts: [],
    steps: new Map(),
    cancelRequested: undefined,
    cancelledBy: undefined,
  }
}

/** What a cancel rule looks at. */
export function aboutOf({ task, envelope, enqueuedAt }: StoredTask): CancelCandidate {
  return { task, tags: tagsOf(envelope), enqueuedAt }
}

export function recordEnd(task: StoredTask, end: AttemptRecord): void {
  task.attempts = [...task.attempts, asJson(end)].slice(-MAX_ATTEMPT_RECORDS)
}

export function statusOf({ place, owner, attemptsMade, attempts }: StoredTask): TaskStatus {
  const last = attempts.at(-1)
  switch (place) {
    case 'completed':
      return 'completed'
    case 'failed':
      return statusOfEnded(last)
    case 'delayed':
      return statusOfDelayed(attemptsMade, last)
    case 'active':
      return owner === undefined ? 'waiting' : 'active'
    case 'waiting':
      return 'waiting'
  }
}

export function recordOf(task: StoredTask): TaskRecord {
  const { id, queue, envelope, fencingToken, attemptsMade, maxAttempts, enqueuedAt, dueAt, startedAt, endedAt } = task
  const status = statusOf(task)
  return {
    id,
    task: task.task,
    version: envelope.version,
    queue,
    status,
    fencingToken: status === 'expired' ? 0 : fencingToken,
    attemptsMade,
    maxAttempts,
    input: envelope.input,
    meta: envelope.meta ?? {},
    tags: envelope.tags ?? [],
    correlationId: envelope.correlationId,
    enqueuedAt,
    dueAt,
    startedAt,
    endedAt,
    progress: isFinal(status) ? undefined : task.progress,
    ...(task.steps.size > 0 && { steps: [...task.steps.keys()] }),
    output: task.output,
    attempts: task.attempts,
  }
}

/** What comes back of a value that is stored as JSON. @throws TypeError for what JSON refuses: a cycle, a bigint. */
export function asJson<T>(value: T): T {
  const text = JSON.stringify(value)
  return text === undefined ? (undefined as T) : JSON.parse(text)
}
