// Adds a task as a BullMQ job, in one composed script, without BullMQ's Job class, which would serialise the task a second time.
import type { BullpenError, Enqueued } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { keyReused } from '@bullpen/engine/internal'
import type { JobJson, RedisClient, RedisQueueBackend } from 'bullmq'
import { type ApiKeyFullReply, decodeApiKeyReply, encodeApiKey, type RateReply } from '../../admission/api-key-steps.ts'
import { decodeReplay, encodeIdempotency, type NoRoomReply } from '../../admission/idempotency-steps.ts'
import { decodeFull, encodeLimits, type FullReply } from '../../admission/limit-steps.ts'
import { type ConflictReply, decodeConflict, encodeUnique } from '../../admission/unique-steps.ts'
import { markedAt } from '../../redis/script-calls.ts'
import type { Commander } from '../../scripts/script.ts'
import { BACKOFF_TYPE } from '../worker/backoff-strategy.ts'
import { ADDED } from './add-steps.ts'
import { commandsOf, withExtras } from './backend.ts'
import { COMPOSED } from './composed-scripts.ts'

/** What the admission has decided about a task that is sent to Redis. */
export interface Admitted {
  /** When the task is expected to start, in ms since 1970. */
  readonly expectedStartAt: number | undefined
  /** Called if Redis's reply says that the task was not stored, because it was refused or because another call's task is returned. */
  readonly onNotStored: (() => void) | undefined
  /** If there is no room for a record of the task's idempotency key, the error for a call that has no earlier record. */
  readonly noRoom: BullpenError | undefined
}

/** `data` is the task's stored string. */
export type AddJob = (task: NewTask, data: string, admitted: Admitted) => Promise<Enqueued>

/**
 * Returns a function that adds a task to one queue. `redis` is the backend's connection. The function stores the job, its tags
 * and its queue timeout atomically. If the job already exists, the function changes nothing, and the returned action depends on
 * which call stored the job. A call takes one round trip.
 */
export function jobAdder(redis: Commander, backend: RedisQueueBackend): AddJob {
  const commands = commandsOf(redis)
  const repeats = markingRepeats(commands)
  return (task, data, admitted) =>
    sendAdd(task.isRepeat ? repeats : commands, backend, task, data, admitted).then((reply) => {
      if (!isStored(task, reply)) admitted.onNotStored?.()
      return enqueuedBy(task, reply, admitted)
    })
}

/** Returns a client that marks each call as a possible repeat. */
function markingRepeats(commands: RedisClient): RedisClient {
  const runCommand: RedisClient['runCommand'] = (name, args) =>
    commands.runCommand(name, [...markedAt(COMPOSED.get(name.replace('bullpen:', ''))?.markAt, args)])
  return { runCommand } as RedisClient
}

/** Sends a task's add through `commands` before awaiting anything. Resolves with Redis's reply. */
export function sendAdd(
  commands: RedisClient,
  backend: RedisQueueBackend,
  task: NewTask,
  data: string,
  admitted: Admitted,
): Promise<AddReply> {
  const extras = {
    id: task.id,
    expiresAt: task.expiresAt === undefined ? '' : `${task.expiresAt}`,
    caller: typeof task.caller === 'object' ? task.caller.token : '',
    tags: task.tags === undefined || task.tags.length === 0 ? '' : JSON.stringify(task.tags),
    idempotency: encodeIdempotency(task, admitted.expectedStartAt, admitted.noRoom === undefined),
    limits: task.limits === undefined ? '' : encodeLimits(task.limits),
    apiKey: encodeApiKey(task),
    unique: encodeUnique(task),
  }
  const job = newJob(task, data)
  // The type is the one that BullMQ uses for its own script.
  return withExtras(backend, extras, () => backend.addJobToTransaction(commands, job, task.id)) as Promise<AddReply>
}

/**
 * Decodes the reply to an add.
 *
 * @throws BullpenError `idempotency_key_reused`, `idempotency_full`, `unique_key_taken`, `queue_full`, `enqueue_rate_exceeded` or
 * `payload_too_large`.
 */
export function enqueuedBy(task: NewTask, reply: AddReply, { expectedStartAt, noRoom }: Admitted): Enqueued {
  if (typeof reply === 'string') return replayed(task, reply)
  const enqueued = typeof reply === 'number' ? added(task, reply) : decodeRefused(task, reply, noRoom)
  return enqueued.action === 'existing' || expectedStartAt === undefined ? enqueued : { ...enqueued, expectedStartAt }
}

/** Decodes the reply to an add that has not stored the task. @throws BullpenError unless the call returns another task instead. */
function decodeRefused(task: NewTask, reply: Exclude<AddReply, number | string>, noRoom: Admitted['noRoom']): Enqueued {
  switch (reply[0]) {
    case 'no_room':
      throw noRoom
    case 'full':
      throw decodeFull(reply, task.queue)
    case 'api key full':
    case 'rate':
      throw decodeApiKeyReply(reply, task)
    default:
      return decodeConflict(task, reply)
  }
}

/** The reply of the composed script: see ADD in ./add-steps.ts. */
export type AddReply = number | string | NoRoomReply | FullReply | ApiKeyFullReply | RateReply | ConflictReply

/** Returns whether the reply says that this call has stored its task. */
export function isStored({ caller }: NewTask, reply: AddReply): reply is number {
  return typeof reply === 'number' && ((reply & ADDED.byThisCall) !== 0 || caller === 'only')
}

function added(task: NewTask, reply: number): Enqueued {
  const { id } = task
  if (!isStored(task, reply)) return { id, action: 'existing' }
  return { id, action: (reply & ADDED.inPlaceOfAnother) === 0 ? 'created' : 'replaced' }
}

function replayed({ id, queue }: NewTask, reply: string): Enqueued {
  const first = decodeReplay(reply, queue)
  if (first === undefined) throw keyReused(queue)
  // The record is this call's own if its reply was lost and the call was sent again.
  return first.id === id ? { id, action: first.action, expectedStartAt: first.expectedStartAt } : first
}

function newJob(task: NewTask, data: string): JobJson {
  const { delayMs: delay, priority, maxAttempts: attempts } = task
  return {
    id: task.id,
    name: task.task,
    data,
    opts: {
      attempts,
      backoff: { type: BACKOFF_TYPE },
      ...(delay !== undefined && { delay }),
      ...(priority > 0 && { priority }),
    },
    timestamp: task.enqueuedAt,
    // Fields that BullMQ's script does not read.
    progress: 0,
    attemptsMade: 0,
    attemptsStarted: 0,
    stalledCounter: 0,
    stacktrace: '',
    returnvalue: '',
    failedReason: '',
  }
}
