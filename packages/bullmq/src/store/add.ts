// Adds tasks to a queue, without BullMQ's Job class, which would serialise each task a second time.
import { type BullpenError, type Enqueued, QueueFullError } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { keyReused, mapTasks, refusedTogether, taskBytes } from '@bullpen/engine/internal'
import { type ApiKeyFullReply, decodeApiKeyReply, type RateReply } from '../admission/api-key-limits.ts'
import { decodeReplay, type NoRoomReply } from '../admission/idempotency-records.ts'
import { decodeFull, type FullReply } from '../admission/queue-limits.ts'
import { type ConflictReply, decodeConflict } from '../admission/unique-keys.ts'
import { type ScriptCall, scriptCall } from '../redis/script-calls.ts'
import { type Commander, defineOn, type Script } from '../scripts/script.ts'
import { createBatcher } from './batcher.ts'
import { type AddConditions, NO_CONDITIONS, newTaskArguments, type StoredStrings } from './new-task.ts'
import { notReplicated, type ReplicatedAdds } from './replicated-adds.ts'
import { addScript, forwardScript } from './scripts.ts'

/** What the admission has decided about a task that is sent to Redis. */
export interface Admitted extends Pick<AddConditions, 'limits' | 'expectedStartAt'> {
  /** Called if Redis's reply says that the task was not stored, because it was refused or because another call's task is returned. */
  readonly onNotStored: (() => void) | undefined
  /**
   * If the task must not be stored unless the record of its idempotency key shows that it already is, the error for a call that has no
   * earlier record.
   */
  readonly noRoom: BullpenError | undefined
}

export type AddTask = (task: NewTask, stored: StoredStrings, admitted: Admitted) => Promise<Enqueued>

/** The bits of the reply for a task that is stored. If no bit is set, another call has stored the task. */
const ADDED = { byThisCall: 1, inPlaceOfAnother: 2 } as const

/** The reply for one task (lua/includes/add/new-tasks.lua). */
export type AddReply =
  | number
  | string
  | NoRoomReply
  | FullReply
  | ApiKeyFullReply
  | RateReply
  | ConflictReply
  | readonly ['error', message: string]
  /** A task of a cancelled group or run was not stored. Only forwarded tasks belong to one. */
  | readonly ['group cancelled']

/**
 * Returns a function that adds a task to the queue whose keys have the prefix `base`. If the task already exists, the function changes
 * nothing, and the returned action depends on which call stored the task. Takes one round trip, which several calls may share
 * (./batcher.ts). A task that must be replicated is sent with `replicated`, and the function rejects with `not_replicated` if no replica
 * has the returned task in time.
 */
export function taskAdder(redis: Commander, base: string, replicated: ReplicatedAdds): AddTask {
  const send = gathered(addCalls(redis, base, ''))
  return (task, stored, admitted) => {
    const args = newTaskArguments(task, stored, conditionsOf(admitted))
    const settled = (reply: AddReply): Enqueued => {
      if (!isStored(task, reply)) admitted.onNotStored?.()
      return enqueuedBy(task, reply, admitted)
    }
    if (task.durability !== 'replicated') return send(args).then(settled)
    return replicated.send({ base, isAll: '', args }).then(({ replies: [reply = ''], unconfirmed }) => {
      const enqueued = settled(reply)
      if (unconfirmed !== undefined) throw notReplicated(enqueued.id, unconfirmed)
      return enqueued
    })
  }
}

/** The arguments that an {@link AddTask} takes. */
export interface AdmittedTask {
  readonly task: NewTask
  readonly stored: StoredStrings
  readonly admitted: Admitted
}

export type AddAllTasks = (tasks: readonly AdmittedTask[]) => Promise<readonly Enqueued[]>

/**
 * Returns a function that adds several tasks to one queue, either all of them or none. In every other respect, it works like the one that
 * {@link taskAdder} returns. Takes one round trip. If one of the tasks must be replicated, all are.
 */
export function allTasksAdder(redis: Commander, base: string, replicated: ReplicatedAdds): AddAllTasks {
  const send = addCalls(redis, base, '1')
  return async (tasks) => {
    if (tasks.length === 0) return []
    const args = tasks.flatMap(({ task, stored, admitted }) => newTaskArguments(task, stored, conditionsOf(admitted)))
    const { replies, unconfirmed } = tasks.some(({ task }) => task.durability === 'replicated')
      ? await replicated.send({ base, isAll: '1', args })
      : { replies: await send(args), unconfirmed: undefined }
    for (const [i, { task, admitted }] of tasks.entries()) {
      if (!isStored(task, replies[i] ?? '')) admitted.onNotStored?.()
    }
    // If a task was refused, decoding its reply throws, whatever the replies for the tasks before it.
    try {
      const enqueued = mapTasks(tasks, ({ task, admitted }, i) => enqueuedBy(task, replies[i] ?? '', admitted))
      if (unconfirmed !== undefined) throw notReplicated(enqueued[0]?.id ?? '', unconfirmed)
      return enqueued
    } catch (error) {
      throw error instanceof QueueFullError ? refusedTogether(error, neededBy(tasks, replies)) : error
    }
  }
}

/**
 * Stores a task from an outbox. Resolves once it is stored, or if an earlier call has stored it, and with 'group cancelled' if the task
 * is a member of a cancelled group and was not stored.
 */
export type AddForwarded = (task: NewTask, stored: StoredStrings) => Promise<'stored' | 'group cancelled'>

/**
 * Returns a function that adds tasks from outboxes to one queue. Such a task is never refused because the queue or Redis is full. Takes one
 * round trip, which several calls may share.
 */
export function forwardedTaskAdder(redis: Commander, base: string): AddForwarded {
  const call = callOf(redis, forwardScript)
  const send = gathered((args) => call([`${base}wait`, base, args.length + 2, ...args]) as Promise<readonly AddReply[]>)
  return async (task, stored) => {
    const reply = await send(newTaskArguments(task, stored, { ...NO_CONDITIONS, limits: task.limits }))
    if (typeof reply !== 'object') return 'stored'
    if (reply[0] === 'error') throw new Error(reply[1])
    return reply[0] === 'group cancelled' ? 'group cancelled' : 'stored'
  }
}

/** Sends the arguments of one or several tasks, before awaiting anything. */
type SendTasks = (args: readonly string[]) => Promise<readonly AddReply[]>

function addCalls(redis: Commander, base: string, isAll: '' | '1'): SendTasks {
  const call = callOf(redis, addScript)
  return (args) => call([`${base}wait`, base, isAll, args.length + 3, ...args]) as Promise<readonly AddReply[]>
}

function callOf(redis: Commander, script: Script<string, string, unknown>): ScriptCall {
  defineOn(redis, script)
  return scriptCall(redis, { ...script, marksRepeats: true })
}

interface Call {
  readonly args: readonly string[]
  readonly bytes: number
  readonly resolve: (reply: AddReply) => void
  readonly reject: (error: unknown) => void
}

/** Returns a function that adds one task, together with those of other callers. If the batch fails, each of its calls fails. */
function gathered(send: SendTasks): (args: readonly string[]) => Promise<AddReply> {
  const enter = createBatcher<Call>(async (calls) => {
    try {
      const replies = await send(calls.flatMap(({ args }) => args))
      for (const [i, { resolve }] of calls.entries()) resolve(replies[i] ?? '')
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  })
  return (args) =>
    new Promise((resolve, reject) => {
      enter({ args, bytes: args.reduce((sum, { length }) => sum + length, 0), resolve, reject })
    })
}

function conditionsOf({ limits, expectedStartAt, noRoom }: Admitted): AddConditions {
  return { limits, expectedStartAt, hasRoom: noRoom === undefined }
}

/**
 * Decodes the reply for a task.
 *
 * @throws BullpenError `idempotency_key_reused`, `idempotency_full`, `unique_key_taken`, `queue_full`, `enqueue_rate_exceeded` or
 * `payload_too_large`.
 */
function enqueuedBy(task: NewTask, reply: AddReply, admitted: Admitted): Enqueued {
  if (typeof reply === 'string') return replayed(task, reply)
  const { expectedStartAt } = admitted
  const enqueued = typeof reply === 'number' ? added(task, reply) : decodeRefused(task, reply, admitted)
  return enqueued.action === 'existing' || expectedStartAt === undefined ? enqueued : { ...enqueued, expectedStartAt }
}

/** Decodes the reply for a task that was not stored. @throws BullpenError unless the call returns another task instead. */
function decodeRefused(
  task: NewTask,
  reply: Exclude<AddReply, number | string>,
  { noRoom, limits }: Admitted,
): Enqueued {
  switch (reply[0]) {
    case 'no_room':
      throw noRoom
    case 'error':
      throw new Error(reply[1])
    case 'group cancelled':
      throw new Error('a task that was not forwarded belongs to a group')
    case 'full':
      throw decodeFull(reply, task.queue)
    case 'api key full':
    case 'rate':
      throw decodeApiKeyReply(reply, task, limits)
    default:
      return decodeConflict(task, reply)
  }
}

/** Returns whether the reply says that this call has stored its task. */
function isStored({ caller }: NewTask, reply: AddReply): reply is number {
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

/** Returns how much room a refused request needs. The other replies belong to tasks that earlier requests have stored. */
function neededBy(tasks: readonly AdmittedTask[], replies: readonly AddReply[]) {
  const added = tasks.filter((_, i) => replies[i] === '' || typeof replies[i] === 'object')
  const sizeOf = ({ data, followUps }: StoredStrings): number => Buffer.byteLength(data) + Buffer.byteLength(followUps)
  const bytes = added.reduce((sum, { stored }) => sum + taskBytes(sizeOf(stored)), 0)
  return { tasks: added.length, bytes }
}
