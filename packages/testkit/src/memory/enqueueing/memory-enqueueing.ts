// Stores tasks for the memory broker: checks whether a task may be stored, and resolves conflicts with earlier calls and tasks.
import { BullpenError, type Enqueued, QueueFullError, type TaskId } from '@bullpen/contract'
import { decodeLines, decodeNext, envelopeSchema } from '@bullpen/contract/internal'
import type { Broker, GiveBack, NewTask, PayloadCodec } from '@bullpen/engine'
import {
  type Clock,
  type ForwardedTask,
  type LimitedTokens,
  limitedTokens,
  mapTasks,
  queueOfAll,
  refusedTogether,
  uniqueKeyTaken,
} from '@bullpen/engine/internal'
import type { Outage } from '../outage.ts'
import type { MemoryStore } from '../store/memory-store.ts'
import { actionOnExisting, type StoredTask, statusOf, storedTask } from '../store/stored-task.ts'
import { bytesOf } from '../store/task-places.ts'
import { ApiKeyBuckets } from './api-key-buckets.ts'
import { IdempotencyRecords } from './idempotency-records.ts'
import { assertRoom, assertRoomForApiKey, type Pending } from './memory-limits.ts'
import { RemovedTasks } from './removed-tasks.ts'
import { StartEstimates } from './start-estimates.ts'
import { type FoundConflict, UniqueKeys } from './unique-keys.ts'

export interface MemoryEnqueueingOptions {
  readonly clock: Clock
  readonly outage: Outage
  readonly codec: PayloadCodec | undefined
  /** The maximum size of a task's stored data, in bytes. */
  readonly sizeLimit: number
  /** The tasks of all queues. A stored task is added. */
  readonly tasks: Map<TaskId, StoredTask>
  /** @throws BullpenError `queue_not_found`. */
  readonly storeOf: (queue: string) => MemoryStore
  /** Called with each task that has been stored. */
  readonly onStored: (task: StoredTask) => void
}

export interface MemoryEnqueueing extends Pick<Broker, 'enqueue' | 'enqueueBulk' | 'enqueueAll' | 'takeInQueues'> {
  /** Stores a task at once, even while the broker is unreachable. @throws BullpenError like `enqueue`. */
  storeNow(task: NewTask): Enqueued
  /** Stores a task from an outbox, unless a task with its id exists. */
  storeForwarded(forwarded: ForwardedTask): void
  /** Checks whether these tasks could be enqueued now. @throws BullpenError like `enqueueAll`. */
  admitMembers(tasks: readonly NewTask[]): void
  /** Checks the size of a task's stored data, in bytes. @throws BullpenError `payload_too_large`. */
  assertSize(dataBytes: number): void
  /** Notes that a task was deleted. */
  noteRemoved(task: StoredTask): void
}

interface PreparedTask {
  readonly isNew: boolean
  /** How many bytes the task takes until it ends. */
  readonly taskBytes: number
  readonly store: () => Enqueued
}

const NOTHING_PENDING: Pending = { tasks: 0, bytes: 0 }

export function createMemoryEnqueueing(options: MemoryEnqueueingOptions): MemoryEnqueueing {
  const { clock, outage, codec, sizeLimit, tasks, storeOf, onStored } = options
  const records = new IdempotencyRecords(clock)
  const starts = new StartEstimates(clock)
  const buckets = new ApiKeyBuckets(clock)
  const removedTasks = new RemovedTasks(clock)
  const uniqueKeys = new UniqueKeys(clock, (id) => tasks.get(id))

  const assertSize = (dataBytes: number): void => {
    if (dataBytes <= sizeLimit) return
    throw new BullpenError('payload_too_large', `the task takes ${dataBytes} bytes as JSON; the limit is ${sizeLimit}`)
  }

  /** Returns the result of a call that stores nothing because an earlier call with the same id has stored the task. */
  const repeated = (task: NewTask): Enqueued | undefined => {
    const known = tasks.get(task.id)
    const mayBeRepeat = task.isRepeat || task.unique !== undefined
    const removed = mayBeRepeat ? removedTasks.actionOf(task) : undefined
    const action = known === undefined ? removed : actionOnExisting(known, task.caller)
    return action && { id: task.id, action }
  }

  /** Resolves a conflict over a unique key in favour of the other task, and returns the result of the call. */
  const keepOther = (task: NewTask, { id, decided }: FoundConflict, other: StoredTask | undefined): Enqueued => {
    if (decided.action === 'refused') throw uniqueKeyTaken(task, id)
    if (decided.action !== 'extended') return { id, action: 'existing', status: other && statusOf(other) }
    const store = storeOf(task.queue)
    if (other !== undefined) store.places.postpone(other, decided.dueAt)
    return { id, action: 'extended', status: 'scheduled', expectedStartAt: starts.expect(task, store) }
  }

  /** @throws BullpenError if one of the task's limits is reached. */
  const assertLimits = (task: NewTask, taskBytes: number, replaced: StoredTask | undefined, pending: Pending): void => {
    if (task.limits === undefined) return
    const room = { store: storeOf(task.queue), taskBytes, now: clock.now(), replaced, pending }
    assertRoom(task, room)
    assertRoomForApiKey(task, room)
    buckets.assertToken(task, pending.tasks)
  }

  /** Stores a task that may be stored, in place of `replaced`. */
  const store = (
    task: NewTask,
    stored: StoredTask,
    replaced: StoredTask | undefined,
    hasReplaced: boolean,
  ): Enqueued => {
    const own = storeOf(task.queue)
    if (replaced !== undefined) own.places.remove(replaced)
    const action = hasReplaced ? 'replaced' : 'created'
    const enqueued = { id: task.id, action, expectedStartAt: starts.expect(task, own) } as const
    tasks.set(task.id, stored)
    stored.hasReplaced = hasReplaced
    uniqueKeys.take(task)
    buckets.take(task)
    records.remember(task, enqueued, task.delayMs === undefined ? 'waiting' : 'scheduled')
    own.add(stored)
    onStored(stored)
    return enqueued
  }

  /**
   * Checks whether a task may be stored. Returns the function that stores it, unless a task with its id already exists or another
   * task has its unique key. `pending` is what the same call stores before it.
   */
  const prepare = (task: NewTask, pending: Pending = NOTHING_PENDING): PreparedTask => {
    storeOf(task.queue)
    const stored = storedTask(task, codec)
    assertSize(stored.dataBytes)
    const taskBytes = bytesOf(stored)
    const earlier = records.find(task) ?? repeated(task)
    if (earlier !== undefined) return { isNew: false, taskBytes, store: () => earlier }
    const conflict = uniqueKeys.conflict(task)
    const other = conflict && tasks.get(conflict.id)
    const hasReplaced = conflict?.decided.action === 'replaced'
    if (conflict !== undefined && !hasReplaced) {
      const keep = (): Enqueued => {
        const kept = keepOther(task, conflict, other)
        records.remember(task, kept, kept.status)
        return kept
      }
      return { isNew: false, taskBytes, store: keep }
    }
    assertLimits(task, taskBytes, hasReplaced ? other : undefined, pending)
    return { isNew: true, taskBytes, store: () => store(task, stored, other, hasReplaced) }
  }

  /** Returns how much room the tasks of an atomic call need that no earlier call has stored. */
  const neededBy = (all: readonly NewTask[]): Pending => {
    const added = mapTasks(all, (task) => prepare({ ...task, limits: undefined })).filter(({ isNew }) => isNew)
    return { tasks: added.length, bytes: added.reduce((sum, { taskBytes }) => sum + taskBytes, 0) }
  }

  const enqueue = async (task: NewTask): Promise<Enqueued> => {
    outage.check()
    return prepare(task).store()
  }

  const takeLimited = async (apiKeyName: string, limited: readonly LimitedTokens[]): Promise<GiveBack> => {
    outage.check()
    return buckets.takeInQueues(apiKeyName, limited)
  }

  return {
    enqueue,
    enqueueBulk: (all) => Promise.allSettled(all.map(enqueue)),
    async enqueueAll(all) {
      outage.check()
      queueOfAll(all)
      let pending = NOTHING_PENDING
      const prepareNext = (task: NewTask): PreparedTask => {
        const each = prepare(task, pending)
        if (each.isNew) pending = { tasks: pending.tasks + 1, bytes: pending.bytes + each.taskBytes }
        return each
      }
      try {
        return mapTasks(all, prepareNext).map((each) => each.store())
      } catch (error) {
        throw error instanceof QueueFullError ? refusedTogether(error, neededBy(all)) : error
      }
    },
    takeInQueues(apiKeyName, wanted) {
      const limited = limitedTokens(apiKeyName, wanted)
      return limited.length === 0 ? undefined : takeLimited(apiKeyName, limited)
    },
    admitMembers(all) {
      const pending = new Map<string, Pending>()
      const admitNext = (task: NewTask): void => {
        const before = pending.get(task.queue) ?? NOTHING_PENDING
        const { taskBytes } = prepare({ ...task, id: '' as TaskId, hasToken: true }, before)
        pending.set(task.queue, { tasks: before.tasks + 1, bytes: before.bytes + taskBytes })
      }
      try {
        mapTasks(all, admitNext)
      } catch (error) {
        if (!(error instanceof QueueFullError)) throw error
        throw refusedTogether(error, neededBy(all.filter(({ queue }) => queue === error.reached.queue)))
      }
    },
    storeNow: (task) => prepare(task).store(),
    storeForwarded({ task, data, lines }) {
      if (tasks.has(task.id)) return
      const stored = storedTask(task)
      const followUps = decodeLines(lines)
      const next = decodeNext(lines)
      const envelope = envelopeSchema.parse(JSON.parse(data))
      store(task, { ...stored, codec, envelope, followUps, next, dataBytes: Buffer.byteLength(data) }, undefined, false)
    },
    assertSize,
    noteRemoved: (task) => removedTasks.add(task),
  }
}
