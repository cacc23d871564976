// Adds a task as a BullMQ job, in one composed script, without BullMQ's Job class, which would serialise the task a second time.
import type { BullpenError, Enqueued, QueueLimits } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { enqueuedEvent, keyReused } from '@bullpen/engine/internal'
import type { JobJson, RedisClient, RedisQueueBackend } from 'bullmq'
import { type ApiKeyFullReply, decodeApiKeyReply, encodeApiKey, type RateReply } from '../../admission/api-key-steps.ts'
import { decodeReplay, encodeIdempotency, type NoRoomReply } from '../../admission/idempotency-steps.ts'
import { decodeFull, encodeLimits, type FullReply } from '../../admission/limit-steps.ts'
import { type ConflictReply, decodeConflict, encodeUnique } from '../../admission/unique-steps.ts'
import { markedAt } from '../../redis/script-calls.ts'
import type { Commander } from '../../scripts/script.ts'
import { encodeLane } from '../turns/lanes.ts'
import { BACKOFF_TYPE } from '../worker/backoff-strategy.ts'
import { ADDED } from './add-steps.ts'
import { commandsOf, withExtras } from './backend.ts'
import { COMPOSED } from './composed-scripts.ts'

/** What the admission has decided about a task that is sent to Redis. */
export interface Admitted {
  /** The limits that apply to the task now. */
  readonly limits: QueueLimits | undefined
  /** When the task is expected to start, in ms since 1970. */
  readonly expectedStartAt: number | undefined
  /** Called if Redis's reply says that the task was not stored, because it was refused or because another call's task is returned. */
  readonly onNotStored: (() => void) | undefined
  /**
   * If the task must not be stored unless the record of its idempotency key shows that it already is, the error for a call that has no
   * earlier record.
   */
  readonly noRoom: BullpenError | undefined
}

/** The strings to store for a task: its envelope, and the lines of its follow-ups, or '' if it has none. */
export interface StoredStrings {
  readonly data: string
  readonly followUps: string
  /** The record of a task that is forwarded from an outbox (../../outbox/forwarded-steps.ts). */
  readonly forwarded?: string
  /** The id of a group and the number of its member that the task is, separated by a blank. */
  readonly group?: string
}

export type AddJob = (task: NewTask, stored: StoredStrings, admitted: Admitted) => Promise<Enqueued>

/**
 * Returns a function that adds a task to one queue. `redis` is the backend's connection. The function stores the job, its tags
 * and its queue timeout atomically. If the job already exists, the function changes nothing, and the returned action depends on
 * which call stored the job. A call takes one round trip.
 */
export function jobAdder(redis: Commander, backend: RedisQueueBackend): AddJob {
  const commands = commandsOf(redis)
  const repeats = markingRepeats(commands)
  return (task, stored, admitted) =>
    sendAdd(mayExist(task) ? repeats : commands, backend, task, stored, admitted).then((reply) => {
      if (!isStored(task, reply)) admitted.onNotStored?.()
      return enqueuedBy(task, reply, admitted)
    })
}

/** Returns whether an earlier call may have stored the task. The script itself looks for the task of a caller with a token. */
function mayExist({ caller, isRepeat = false, onlyExisting = false }: NewTask): boolean {
  return isRepeat || onlyExisting || caller === undefined
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
  { data, followUps, forwarded = '', group = '' }: StoredStrings,
  admitted: Admitted,
): Promise<AddReply> {
  const extras = {
    id: task.id,
    expiresAt: task.expiresAt === undefined ? '' : `${task.expiresAt}`,
    caller: typeof task.caller === 'object' ? task.caller.token : '',
    tags: task.tags === undefined || task.tags.length === 0 ? '' : JSON.stringify(task.tags),
    idempotency: encodeIdempotency(task, admitted.expectedStartAt, admitted.noRoom === undefined),
    limits: admitted.limits === undefined ? '' : encodeLimits(admitted.limits),
    apiKey: encodeApiKey(task, admitted.limits),
    unique: encodeUnique(task),
    events: task.events === undefined ? '' : `${task.events}\n${JSON.stringify(enqueuedEvent(task))}`,
    followUps,
    forwarded,
    group,
    lane: encodeLane(task),
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
export function enqueuedBy(task: NewTask, reply: AddReply, admitted: Admitted): Enqueued {
  if (typeof reply === 'string') return replayed(task, reply)
  const { expectedStartAt } = admitted
  const enqueued = typeof reply === 'number' ? added(task, reply) : decodeRefused(task, reply, admitted)
  return enqueued.action === 'existing' || expectedStartAt === undefined ? enqueued : { ...enqueued, expectedStartAt }
}

/** Decodes the reply to an add that has not stored the task. @throws BullpenError unless the call returns another task instead. */
function decodeRefused(
  task: NewTask,
  reply: Exclude<AddReply, number | string>,
  { noRoom, limits }: Admitted,
): Enqueued {
  switch (reply[0]) {
    case 'no_room':
      throw noRoom
    case 'full':
      throw decodeFull(reply, task.queue)
    case 'api key full':
    case 'rate':
      throw decodeApiKeyReply(reply, task, limits)
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
    // A string, because Redis takes 0.3 µs longer to store such a large number.
    timestamp: `${task.enqueuedAt}` as unknown as number,
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

/**
 * Stores a task from an outbox. Resolves once it is stored, or if an earlier call has stored it, and with 'group cancelled' if the task
 * is a member of a cancelled group and was not stored.
 */
export type AddForwarded = (task: NewTask, stored: StoredStrings) => Promise<'stored' | 'group cancelled'>

/** A task that is not a member of a group never receives this reply. */
type GroupCancelledReply = readonly ['group cancelled']

/**
 * Returns a function that adds tasks from outboxes to one queue. Such a task is never refused: it has no limits, and the script runs
 * even if Redis is full, because the task replaces an entry that takes as much memory. A call takes one round trip.
 */
export function forwardedJobAdder(redis: Commander, backend: RedisQueueBackend): AddForwarded {
  const commands = commandsOf(redis)
  const runCommand: RedisClient['runCommand'] = (name, args) =>
    commands.runCommand(name.replace('bullpen:', 'bullpen:forward:'), args)
  const forwarding = { runCommand } as RedisClient
  return async (task, stored) => {
    const { limits } = task
    const reply = (await sendAdd(forwarding, backend, task, stored, { ...UNCHECKED, limits })) as
      | AddReply
      | GroupCancelledReply
    return typeof reply === 'object' && reply[0] === 'group cancelled' ? 'group cancelled' : 'stored'
  }
}

const UNCHECKED = { expectedStartAt: undefined, onNotStored: undefined, noRoom: undefined } as const
