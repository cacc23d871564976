// Adds a task as a BullMQ job, in one composed script, without BullMQ's Job class, which would serialise the task a second time.
import type { BullpenError, Enqueued, QueueLimits } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { keyReused } from '@bullpen/engine/internal'
import { type ApiKeyFullReply, decodeApiKeyReply, type RateReply } from '../../admission/api-key-steps.ts'
import { decodeReplay, type NoRoomReply } from '../../admission/idempotency-steps.ts'
import { decodeFull, type FullReply } from '../../admission/limit-steps.ts'
import { type ConflictReply, decodeConflict } from '../../admission/unique-steps.ts'
import { markedAt } from '../../redis/script-calls.ts'
import type { Commander } from '../../scripts/script.ts'
import { type Add, type AddConditions, addKeys, addOf, type StoredStrings } from './add-arguments.ts'
import { ADDED } from './add-steps.ts'
import { commandsOf } from './backend.ts'
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

export type AddJob = (task: NewTask, stored: StoredStrings, admitted: Admitted) => Promise<Enqueued>

/**
 * Returns a function that adds a task to the queue whose keys have the prefix `base`. The function stores the job, its tags and its
 * queue timeout atomically. If the job already exists, the function changes nothing, and the returned action depends on which call
 * stored the job. A call takes one round trip.
 */
export function jobAdder(redis: Commander, base: string): AddJob {
  const run = runAdds(redis, base, '')
  return (task, stored, admitted) =>
    run(addOf(task, stored, conditionsOf(admitted)), mayExist(task)).then((reply) => {
      if (!isStored(task, reply)) admitted.onNotStored?.()
      return enqueuedBy(task, reply, admitted)
    })
}

/** Returns the part of the admission's decision that the script has to know. */
export function conditionsOf({ limits, expectedStartAt, noRoom }: Admitted): AddConditions {
  return { limits, expectedStartAt, hasRoom: noRoom === undefined }
}

/** Returns whether an earlier call may have stored the task. The script itself looks for the task of a caller with a token. */
function mayExist({ caller, isRepeat = false, onlyExisting = false }: NewTask): boolean {
  return isRepeat || onlyExisting || caller === undefined
}

/** Sends an add before awaiting anything. A call that may be a repeat is marked. Resolves with Redis's reply. */
type RunAdd = (add: Add, mayBeRepeat: boolean) => Promise<AddReply>

/** `prefix` is that of the scripts' names: '' for those of BullMQ's name, or 'forward:' for those that run even if Redis is full. */
function runAdds(redis: Commander, base: string, prefix: '' | 'forward:'): RunAdd {
  const commands = commandsOf(redis)
  const keys = addKeys(base)
  return ({ script, own, extra }, mayBeRepeat) => {
    const args = [...keys[script], ...own, base, ...withoutEmptyEnd(extra)]
    const markAt = mayBeRepeat ? COMPOSED.get(script)?.markAt : undefined
    return commands.runCommand(`bullpen:${prefix}${script}`, markedAt(markAt, args) as string[]) as Promise<AddReply>
  }
}

/** The script reads an argument that was not sent as ''. */
function withoutEmptyEnd(values: readonly string[]): readonly string[] {
  return values.slice(0, values.findLastIndex((value) => value !== '') + 1)
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
export function forwardedJobAdder(redis: Commander, base: string): AddForwarded {
  const run = runAdds(redis, base, 'forward:')
  return async (task, stored) => {
    const conditions = { limits: task.limits, expectedStartAt: undefined, hasRoom: true }
    const reply = (await run(addOf(task, stored, conditions), false)) as AddReply | GroupCancelledReply
    return typeof reply === 'object' && reply[0] === 'group cancelled' ? 'group cancelled' : 'stored'
  }
}
