/**
 * An in-memory broker with the same semantics as the Redis broker. It runs on the test's clock, so delays, retries, sweeps and
 * the recovery of lost tasks happen when the test moves that clock. The same conformance suite tests both brokers.
 */
import { randomBytes } from 'node:crypto'
import {
  BullpenError,
  type CallOptions,
  type Enqueued,
  type InputOf,
  isFinal,
  type TaskDefinition,
  type TaskId,
  type TaskRecord,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { Broker, NewTask, PayloadCodec } from '@bullpen/engine'
import {
  type CancelRule,
  type Clock,
  editedEnvelope,
  mapTasks,
  newTask,
  type PoolOptions,
  queueOfAll,
  type Retention,
  taskBytes,
  uniqueKeyTaken,
} from '@bullpen/engine/internal'
import { ApiKeyBuckets } from './api-key-buckets.ts'
import { DeadChanges } from './dead-changes.ts'
import { IdempotencyRecords } from './idempotency-records.ts'
import { createMemoryConsumer, type MemoryConsumer } from './memory-consumer.ts'
import { countDead, matchingDead, searchDead } from './memory-dead-tasks.ts'
import { assertRoom, assertRoomForApiKey, type Pending } from './memory-limits.ts'
import { countTasks, listTasks } from './memory-listing.ts'
import { memorySchedules } from './memory-schedules.ts'
import { MemoryStore } from './memory-store.ts'
import { Outage } from './outage.ts'
import { RemovedTasks } from './removed-tasks.ts'
import { StartEstimates } from './start-estimates.ts'
import { actionOnExisting, recordOf, type StoredTask, statusOf, storedTask } from './stored-task.ts'
import { type FoundConflict, UniqueKeys } from './unique-keys.ts'

export interface MemoryBrokerOptions {
  readonly clock: Clock
  /** The queues that exist. A task for any other queue is rejected with `queue_not_found`. By default, every queue exists. */
  readonly queues?: readonly string[]
  /** Encodes the payloads that the broker stores. By default, they are stored as they are. */
  readonly codec?: PayloadCodec | undefined
  /** The maximum size of a task's stored data, in bytes, including its encoded input. By default, there is no limit. */
  readonly sizeLimit?: number
  /** The time from the death of a worker or the loss of a lock until its tasks are recovered, in ms. Defaults to 6,000. */
  readonly stallMs?: number
  /** How often the broker looks for tasks whose queue timeout has passed, in ms. Defaults to 2,000. */
  readonly sweepMs?: number
  /** How long ended tasks are kept. By default, they are kept until the broker is closed. */
  readonly retention?: Retention | undefined
  /** Called with each task that a sweep has expired. */
  readonly onExpired?: (expired: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
}

export interface MemoryConsumerOptions {
  readonly queue: string
  /** How many tasks may be fetched at once, until the pool changes this number. */
  readonly concurrency: number
  /** The name of the pool's worker, which {@link MemoryBroker.kill} accepts. Defaults to 'memory'. */
  readonly worker?: string
}

/** A broker that behaves like the Redis broker and can be made to fail. */
export interface MemoryBroker extends Broker {
  /** Enqueues a task and returns its id. @throws BullpenError `invalid_request` if the options contradict each other. */
  add<D extends TaskDefinition>(definition: D, input: InputOf<D>, call?: CallOptions): Promise<TaskId>
  /** Creates the consumer for a pool. */
  consumer(options: MemoryConsumerOptions): PoolOptions['consumer']
  /** Makes the store unreachable: every method rejects with `redis_unavailable`, and pools do not fetch tasks. */
  fail(): void
  /** Makes the store reachable again. */
  recover(): void
  /** Makes fetching fail in every pool. Each pool then restarts its consumer on its own. */
  failConsumers(): void
  /** Removes a running task's lock. The task's pool is notified, and the task is started again after `stallMs`. */
  loseLock(id: TaskId): void
  /** Kills a worker, as SIGKILL would. Its pools no longer write anything, and their tasks are recovered after `stallMs`. */
  kill(worker: string): void
}

interface PreparedTask {
  readonly isNew: boolean
  /** The size of the task's stored string, in bytes. */
  readonly dataBytes: number
  readonly store: () => Enqueued
}

const STALL_MS = 6_000
const SWEEP_MS = 2_000

export function memoryBroker(options: MemoryBrokerOptions): MemoryBroker {
  const { clock, queues, sizeLimit = Number.POSITIVE_INFINITY, retention = {} } = options
  const { stallMs = STALL_MS, sweepMs = SWEEP_MS } = options
  const outage = new Outage()
  const tasks = new Map<TaskId, StoredTask>()
  const stores = new Map<string, MemoryStore>()
  const records = new IdempotencyRecords(clock)
  const starts = new StartEstimates(clock)
  const buckets = new ApiKeyBuckets(clock)
  const removedTasks = new RemovedTasks(clock)
  const deadChanges = new DeadChanges(clock)
  const uniqueKeys = new UniqueKeys(clock, (id) => tasks.get(id))
  const consumers: { readonly worker: string; readonly consumer: MemoryConsumer }[] = []
  const waiters = new Map<TaskId, Set<() => void>>()
  const cancels = new Map<string, { readonly rule: CancelRule; doneAt: number | undefined }>()
  let stopSweep: (() => void) | undefined

  const wakeWaiters = ({ id }: StoredTask): void => {
    for (const wake of waiters.get(id) ?? []) wake()
  }

  const onRemoved = (task: StoredTask): void => {
    tasks.delete(task.id)
    removedTasks.add(task)
    wakeWaiters(task)
  }

  const storeOf = (queue: string): MemoryStore => {
    if (queues !== undefined && !queues.includes(queue)) {
      throw new BullpenError('queue_not_found', `unknown queue '${queue}'; expected one of ${queues.join(', ')}`)
    }
    const store = stores.get(queue) ?? new MemoryStore({ clock, stallMs, retention, onEnded: wakeWaiters, onRemoved })
    stores.set(queue, store)
    return store
  }

  /**
   * Expires tasks. The sweep runs only as long as a task may expire, because otherwise a fake clock would never run out of
   * timers.
   */
  const sweep = (): void => {
    stopSweep = clock.after(sweepMs, () => {
      stopSweep = undefined
      // During an outage, no task is expired, and another sweep is scheduled.
      const found = [...stores.values()].map((store) => (outage.lasts ? undefined : store.expire('sweep:memory')))
      for (const { id, queue, task } of found.flatMap((each) => each?.expired ?? [])) {
        options.onExpired?.({ queue, id, task })
      }
      if (found.some((each) => each?.more ?? true)) sweep()
    })
  }

  const find = (id: TaskId): TaskRecord | undefined => {
    outage.check()
    const task = tasks.get(id)
    return task && recordOf(task)
  }

  /** @throws BullpenError `payload_too_large`. */
  const assertSize = (dataBytes: number): void => {
    if (dataBytes <= sizeLimit) return
    throw new BullpenError('payload_too_large', `the task takes ${dataBytes} bytes as JSON; the limit is ${sizeLimit}`)
  }

  /**
   * Checks whether a task may be stored. Returns the function that stores it, unless a task with its id already exists or another
   * task has its unique key. `pending` is what the same call stores before it.
   */
  const prepare = (task: NewTask, pending: Pending = { tasks: 0, bytes: 0 }): PreparedTask => {
    const store = storeOf(task.queue)
    const stored = storedTask(task, options.codec)
    const { dataBytes } = stored
    assertSize(dataBytes)
    const earlier = records.find(task)
    if (earlier !== undefined) return { isNew: false, dataBytes, store: () => earlier }
    const known = tasks.get(task.id)
    const mayBeRepeat = task.isRepeat || task.unique !== undefined
    const removed = mayBeRepeat ? removedTasks.actionOf(task) : undefined
    const action = known === undefined ? removed : actionOnExisting(known, task.caller)
    if (action !== undefined) return { isNew: false, dataBytes, store: () => ({ id: task.id, action }) }
    const conflict = uniqueKeys.conflict(task)
    const other = conflict && tasks.get(conflict.id)
    const hasReplaced = conflict?.decided.action === 'replaced'
    if (conflict !== undefined && !hasReplaced) {
      return {
        isNew: false,
        dataBytes,
        store() {
          const kept = keepOther(task, conflict, other)
          records.remember(task, kept, kept.status)
          return kept
        },
      }
    }
    if (task.limits !== undefined) {
      const replaced = hasReplaced ? other : undefined
      const room = { store, dataBytes, now: clock.now(), replaced, pending }
      assertRoom(task, room)
      assertRoomForApiKey(task, room)
      buckets.assertToken(task, pending.tasks)
    }
    return {
      isNew: true,
      dataBytes,
      store() {
        if (other !== undefined) store.remove(other)
        const action = hasReplaced ? 'replaced' : 'created'
        const enqueued = { id: task.id, action, expectedStartAt: starts.expect(task, store) } as const
        tasks.set(task.id, stored)
        stored.hasReplaced = hasReplaced
        uniqueKeys.take(task)
        buckets.take(task)
        records.remember(task, enqueued, task.delayMs === undefined ? 'waiting' : 'scheduled')
        store.add(stored)
        if (task.expiresAt !== undefined && stopSweep === undefined) sweep()
        return enqueued
      },
    }
  }

  const enqueue = async (task: NewTask): Promise<Enqueued> => {
    outage.check()
    return prepare(task).store()
  }

  const { schedules, close: closeSchedules } = memorySchedules({
    clock,
    check: () => outage.check(),
    statusOf(id) {
      const task = tasks.get(id)
      return task && statusOf(task)
    },
    enqueue: (task) => void prepare(task).store(),
    async cancel({ queue, id, stoppable }) {
      const task = tasks.get(id)
      if (task !== undefined) storeOf(queue).cancel(task, { stoppable, by: 'schedule' })
    },
  })

  /** Resolves a conflict over a unique key in favour of the other task, and returns the result of the call. */
  const keepOther = (task: NewTask, { id, decided }: FoundConflict, other: StoredTask | undefined): Enqueued => {
    if (decided.action === 'refused') throw uniqueKeyTaken(task, id)
    if (decided.action !== 'extended') return { id, action: 'existing', status: other && statusOf(other) }
    const store = storeOf(task.queue)
    if (other !== undefined) store.postpone(other, decided.dueAt)
    return { id, action: 'extended', status: 'scheduled', expectedStartAt: starts.expect(task, store) }
  }

  return {
    enqueue,

    enqueueBulk: (tasks) => Promise.allSettled(tasks.map(enqueue)),

    async enqueueAll(tasks) {
      outage.check()
      queueOfAll(tasks)
      let pending: Pending = { tasks: 0, bytes: 0 }
      const prepared = mapTasks(tasks, (task) => {
        const each = prepare(task, pending)
        if (each.isNew) pending = { tasks: pending.tasks + 1, bytes: pending.bytes + taskBytes(each.dataBytes) }
        return each
      })
      return prepared.map(({ store }) => store())
    },

    async add(definition, input, call = {}) {
      const now = clock.now()
      const id = createTaskId(definition.queue, now, randomBytes(ID_RANDOM_BYTES))
      await enqueue(newTask(definition, input, call, { id, enqueuedAt: now, correlationId: undefined }))
      return id
    },

    find: async (id) => find(id),

    async waitUntilFinished(id, signal) {
      let changed = Promise.withResolvers<void>()
      const wake = (): void => changed.resolve()
      const wakes = waiters.get(id) ?? new Set()
      waiters.set(id, wakes.add(wake))
      signal.addEventListener('abort', wake)
      try {
        for (;;) {
          changed = Promise.withResolvers()
          const record = find(id)
          if (record === undefined || isFinal(record.status) || signal.aborted) return record
          await changed.promise
        }
      } finally {
        signal.removeEventListener('abort', wake)
        wakes.delete(wake)
        if (wakes.size === 0) waiters.delete(id)
      }
    },

    async cancel(id, options) {
      outage.check()
      const task = tasks.get(id)
      return task === undefined ? 'not_found' : storeOf(task.queue).cancel(task, options)
    },

    async cancelMany({ by = 'memory', ...filter }) {
      outage.check()
      const now = clock.now()
      const id = createTaskId(filter.queue, now, randomBytes(ID_RANDOM_BYTES))
      const rule = { ...filter, id, by, at: now }
      storeOf(filter.queue).cancelWhere(rule)
      cancels.set(id, { rule, doneAt: undefined })
      return rule
    },

    async cancelProgress(id) {
      outage.check()
      const found = cancels.get(id)
      if (found === undefined) return undefined
      const { ended, isDone } = storeOf(found.rule.queue).progressOf(found.rule)
      if (isDone) found.doneAt ??= clock.now()
      return { rule: found.rule, ended, doneAt: found.doneAt }
    },

    async retry(id, options) {
      outage.check()
      const task = tasks.get(id)
      if (task === undefined) return 'not_found'
      const { edit } = options
      const envelope = edit === undefined ? task.envelope : editedEnvelope(task.envelope, edit, task.codec)
      assertSize(Buffer.byteLength(JSON.stringify(envelope)))
      return storeOf(task.queue).retry(task, options, envelope)
    },

    async deleteDead(id) {
      outage.check()
      const task = tasks.get(id)
      return task === undefined ? 'not_found' : storeOf(task.queue).deleteDead(task)
    },

    async searchDead(query) {
      outage.check()
      return searchDead(storeOf(query.queue), query)
    },

    async countMatchingDead(filter) {
      outage.check()
      return { matching: matchingDead(storeOf(filter.queue), filter).length, exact: true }
    },

    async changeDead(change) {
      outage.check()
      const { queue } = change.filter
      const request = { ...change, id: createTaskId(queue, clock.now(), randomBytes(ID_RANDOM_BYTES)), at: clock.now() }
      return deadChanges.start(storeOf(queue), request)
    },

    async deadProgress(id) {
      outage.check()
      return deadChanges.progressOf(id)
    },

    async countDead(queue) {
      outage.check()
      return countDead(storeOf(queue))
    },

    async list(query) {
      outage.check()
      return listTasks(storeOf(query.queue), query)
    },

    async counts(queue) {
      outage.check()
      return countTasks(storeOf(queue))
    },

    async totals(queue) {
      outage.check()
      const store = storeOf(queue)
      const tasks = Object.values(countTasks(store)).reduce((sum, count) => sum + count, 0)
      const { bytes, accepted, removed } = store
      // There is no index that could drift.
      return { bytes, accepted, removed, drift: 0, unaccounted: accepted - tasks - removed }
    },

    schedules,

    async ping() {
      outage.check()
    },

    async close() {
      closeSchedules()
      stopSweep?.()
      deadChanges.close()
      for (const store of stores.values()) store.close()
    },

    consumer: ({ queue, concurrency, worker = 'memory' }) => {
      return (run, pool) => {
        const consumer = createMemoryConsumer({ store: storeOf(queue), outage, concurrency, worker }, run, pool)
        consumers.push({ worker, consumer })
        return consumer
      }
    },

    fail: () => outage.begin(),

    recover() {
      outage.end()
      for (const store of stores.values()) store.wake()
    },

    failConsumers() {
      for (const { consumer } of consumers) consumer.fail()
    },

    loseLock(id) {
      const task = tasks.get(id)
      const owner = task?.owner
      if (task === undefined || owner === undefined) return
      storeOf(task.queue).orphan(task, owner)
      owner.lockLost()
    },

    kill(name) {
      for (const { consumer } of consumers.filter(({ worker }) => worker === name)) consumer.kill()
    },
  }
}
