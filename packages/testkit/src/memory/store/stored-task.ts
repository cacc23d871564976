// A task as the memory broker stores it, and the task record that the broker returns.
import {
  type AttemptRecord,
  type EnqueueAction,
  type GroupId,
  isFinal,
  type Progress,
  type TaskGroup,
  type TaskId,
  type TaskRecord,
  type TaskRetry,
  type TaskStatus,
} from '@bullpen/contract'
import {
  decodeLines,
  type Envelope,
  namedQueues,
  type StoredFollowUp,
  type StoredTemplate,
} from '@bullpen/contract/internal'
import type { Caller, NewTask, PayloadCodec, Turn } from '@bullpen/engine'
import {
  type Admission,
  type CancelCandidate,
  type CancelCause,
  decodeInput,
  decodePayload,
  type ErrorKind,
  envelopeText,
  followUpLines,
  MAX_ATTEMPT_RECORDS,
  parseIdentity,
  statusOfDelayed,
  statusOfEnded,
  tagsOf,
} from '@bullpen/engine/internal'
import { type Lane, laneOf } from './lane.ts'

/** Where a task is stored. Dead, cancelled and expired tasks share a place and are distinguished by their last attempt record. */
export type Place = 'waiting' | 'active' | 'delayed' | 'completed' | 'failed'

/** The holder of a task's lock. A new owner is created each time the task is fetched. */
export interface Owner {
  /** The name of the pool's worker, for the record of a lost attempt. */
  readonly worker: string
  lockLost(): void
  cancel(cause: CancelCause): void
}

export interface StoredTask extends Pick<NewTask, 'id' | 'task' | 'queue' | 'enqueuedAt' | 'maxAttempts' | 'priority'> {
  /** Changes if a dead task is retried, as does `dataBytes`. */
  envelope: Envelope
  /** The size of the envelope as JSON, in bytes. */
  dataBytes: number
  /** The tasks to enqueue when the task ends. Empty once it has ended, unless it is dead. */
  followUps: readonly StoredFollowUp[]
  /** The follow-ups that the handler has added for the success that is being committed. */
  added: readonly StoredFollowUp[]
  /** The compensations that follow this one. The last one comes first. */
  next: readonly StoredTemplate[]
  /** The registered compensations, in the order of their registration. */
  compensations: readonly { readonly identity: string; readonly template: StoredTemplate }[]
  /** When the compensations were released. */
  compensatedAt: number | undefined
  /** How often a task with follow-ups has ended. */
  ends: number
  /** The name of the API key for which the task is counted until it ends. */
  readonly countedFor: string | undefined
  /** Encodes the task's payloads, which are stored in encoded form. */
  readonly codec: PayloadCodec | undefined
  /** Changes if the task is postponed, as does `expiresAt`. */
  delayMs: number
  readonly turn: Turn | undefined
  /** Where the task waits, if it takes turns or needs something. */
  readonly lane: Lane | undefined
  /** The services on whose circuit breakers the task depends. */
  readonly services: readonly string[]
  /** The generations of their breakers when the current attempt started. */
  admission: Admission
  expiresAt: number | undefined
  /** Distinguishes the call that stored the task from other calls with the same id. */
  readonly callerToken: string | undefined
  /** Whether the task replaced another one when it was stored. */
  hasReplaced: boolean
  place: Place
  /** Undefined for an active task whose owner is lost and that has not been recovered yet. */
  owner: Owner | undefined
  fencingToken: number
  attemptsMade: number
  /** How many times the task has lost its worker. A loss does not count if the worker lived. */
  losses: number
  /** How many of its workers have died because of the task, as far as is known. */
  deaths: number
  /** The fencing token of an attempt that runs alone in its worker's process. */
  alone: number | undefined
  /** Whether the task returns to the head of the queue when it is due. */
  returnsFirst: boolean
  dueAt: number | undefined
  startedAt: number | undefined
  endedAt: number | undefined
  progress: Progress | undefined
  output: unknown
  attempts: readonly AttemptRecord[]
  /** The kind of error that made the task dead. */
  errorKind: ErrorKind | undefined
  /** The last retries of the task after it was dead, oldest first. */
  retries: readonly (TaskRetry & { readonly request: string })[]
  /** The results of finished steps, as JSON. */
  readonly steps: Map<string, string>
  /** Why the task ends when its current attempt ends. */
  cancelRequested: CancelCause | undefined
  /** The id of the cancel by filter that covers the task. */
  cancelledBy: string | undefined
  /** Whether the task is cancelled because the run to which it belongs has been stopped. */
  isCancelledWithRun: boolean
}

export function storedTask(task: NewTask, codec?: PayloadCodec): StoredTask {
  const { id, queue, enqueuedAt, delayMs = 0, maxAttempts, priority, turn, services = [], expiresAt, caller } = task
  const data = envelopeText(task, codec)
  return {
    id,
    task: task.task,
    queue,
    envelope: JSON.parse(data),
    dataBytes: Buffer.byteLength(data),
    followUps: decodeLines(followUpLines(task.followUps, codec)),
    added: [],
    next: [],
    compensations: [],
    compensatedAt: undefined,
    ends: 0,
    countedFor: task.limits?.perApiKey?.maxUnfinishedTasks === undefined ? undefined : task.apiKeyName,
    codec,
    enqueuedAt,
    delayMs,
    maxAttempts,
    priority,
    turn,
    lane: laneOf(task),
    services,
    admission: new Map(),
    expiresAt,
    callerToken: typeof caller === 'object' ? caller.token : undefined,
    hasReplaced: false,
    place: 'waiting',
    owner: undefined,
    fencingToken: 0,
    attemptsMade: 0,
    losses: 0,
    deaths: 0,
    alone: undefined,
    returnsFirst: false,
    dueAt: undefined,
    startedAt: undefined,
    endedAt: undefined,
    progress: undefined,
    output: undefined,
    attempts: [],
    errorKind: undefined,
    retries: [],
    steps: new Map(),
    cancelRequested: undefined,
    cancelledBy: undefined,
    isCancelledWithRun: false,
  }
}

/** Returns the action of an enqueue whose task has already been stored. */
export function actionOnExisting({ callerToken, hasReplaced }: StoredTask, caller: Caller | undefined): EnqueueAction {
  if (caller === undefined || (caller !== 'only' && caller.token !== callerToken)) return 'existing'
  return hasReplaced ? 'replaced' : 'created'
}

/** Returns the fields that a cancel rule matches. */
export function candidateOf({ task, envelope, enqueuedAt }: StoredTask): CancelCandidate {
  return { task, tags: tagsOf(envelope), group: envelope.group ?? envelope.run, enqueuedAt }
}

/** Keeps the newest records. */
export function addRecord(task: StoredTask, record: AttemptRecord): void {
  task.attempts = [...task.attempts, asJson(record)].slice(-MAX_ATTEMPT_RECORDS)
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
  const { id, queue, maxAttempts, priority, enqueuedAt, dueAt, startedAt, endedAt, attemptsMade, attempts } = task
  const { envelope, codec, output } = task
  const { version, correlationId, traceContext, concurrencyKey } = envelope
  const status = statusOf(task)
  return {
    ...{ id, queue, maxAttempts, priority, enqueuedAt, dueAt, startedAt, endedAt, attemptsMade, attempts, status },
    ...{ version, correlationId, traceContext, concurrencyKey },
    task: task.task,
    fencingToken: status === 'expired' ? 0 : task.fencingToken,
    input: decodeInput(envelope, codec),
    meta: envelope.meta ?? {},
    tags: envelope.tags ?? [],
    progress: isFinal(status) ? undefined : task.progress,
    ...(task.steps.size > 0 && { steps: [...task.steps.keys()] }),
    output: codec === undefined || output === undefined ? output : decodePayload(output, codec),
    ...(status === 'dead' && task.errorKind !== undefined && { fingerprint: task.errorKind.fingerprint }),
    ...(envelope.followUpOf !== undefined && { followUpOf: envelope.followUpOf as TaskId | GroupId }),
    ...(task.followUps.length > 0 && {
      followUps: task.followUps.map(({ on, template }) => ({ on, task: template.task, queue: template.queue })),
      followUpQueues: namedQueues(task.followUps),
    }),
    ...(envelope.group !== undefined && { group: envelope.group as TaskGroup }),
    ...(task.compensations.length > 0 && {
      compensations: task.compensations.map(({ identity }) => parseIdentity(identity)),
    }),
    ...(task.compensatedAt !== undefined && { compensatedAt: task.compensatedAt }),
    ...(envelope.retryOf !== undefined && { retryOf: envelope.retryOf as TaskId }),
    ...(task.retries.length > 0 && { retries: task.retries.map(({ request: _, ...retry }) => retry) }),
  }
}

/**
 * Returns a value after a round trip through JSON. @throws TypeError if JSON cannot represent the value because it contains a
 * cycle or a bigint.
 */
export function asJson<T>(value: T): T {
  const text = JSON.stringify(value)
  return text === undefined ? (undefined as T) : JSON.parse(text)
}
