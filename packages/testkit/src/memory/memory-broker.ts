/**
 * An in-memory broker with the same semantics as the Redis broker. It runs on the test's clock, so delays, retries, sweeps and
 * the recovery of lost tasks happen when the test moves that clock. The same conformance suite tests both brokers.
 */
import { randomBytes } from 'node:crypto'
import {
  BullpenError,
  type CallOptions,
  type FinalStatus,
  type InputOf,
  isFinal,
  type TaskDefinition,
  type TaskId,
  type TaskRecord,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { Broker, PayloadCodec } from '@bullpen/engine'
import {
  type CancelRule,
  type Candidates,
  type Clock,
  editedEnvelope,
  newTask,
  type PoolOptions,
  type Retention,
  textOfResult,
} from '@bullpen/engine/internal'
import { DeadChanges } from './dead-tasks/dead-changes.ts'
import { countDead, matchingDead, searchDead } from './dead-tasks/searches.ts'
import { createMemoryEnqueueing } from './enqueueing/memory-enqueueing.ts'
import { type MemoryEventStream, memoryEventStream } from './events/memory-event-stream.ts'
import { taskReports } from './events/task-reports.ts'
import { createMemoryConsumer, type MemoryConsumer } from './memory-consumer.ts'
import { memoryGroups } from './memory-groups.ts'
import { countTasks, listTasks } from './memory-listing.ts'
import { MemoryOutbox } from './memory-outbox.ts'
import { memoryRuns } from './memory-runs.ts'
import { memorySchedules } from './memory-schedules.ts'
import { Outage } from './outage.ts'
import { MemoryStore } from './store/memory-store.ts'
import { recordOf, type StoredTask, statusOf } from './store/stored-task.ts'
import { TaskWaiters } from './task-waiters.ts'

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
  /** The tasks that may be fetched. By default, all tasks of the queue. */
  readonly candidates?: Candidates
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

/** Returns what a completed task of a pipeline passes on. */
function outputOf({ output, codec }: StoredTask, status: FinalStatus): string {
  return status === 'completed' ? textOfResult({ output, ...(codec !== undefined && { encoded: true as const }) }) : ''
}

const STALL_MS = 6_000
const SWEEP_MS = 2_000

export function memoryBroker(options: MemoryBrokerOptions): MemoryBroker {
  const { clock, queues, sizeLimit = Number.POSITIVE_INFINITY, retention = {} } = options
  const { stallMs = STALL_MS, sweepMs = SWEEP_MS } = options
  const outage = new Outage()
  const tasks = new Map<TaskId, StoredTask>()
  const stores = new Map<string, MemoryStore>()
  const deadChanges = new DeadChanges(clock)
  const consumers: { readonly worker: string; readonly consumer: MemoryConsumer }[] = []
  const waiters = new TaskWaiters()
  const cancels = new Map<string, { readonly rule: CancelRule; doneAt: number | undefined }>()
  let stopSweep: (() => void) | undefined

  const wakeWaiters = ({ id }: StoredTask): void => waiters.wake(id)

  const onEnded = (task: StoredTask): void => {
    wakeWaiters(task)
    const status = statusOf(task)
    if (!isFinal(status)) return
    if (task.envelope.group !== undefined) groups.ended(task.envelope.group, status)
    if (task.envelope.run !== undefined) runs.ended(task.envelope.run, status, outputOf(task, status))
    outbox.write(task, status)
  }

  const onRemoved = (task: StoredTask): void => {
    tasks.delete(task.id)
    if (!isFinal(statusOf(task))) outbox.write(task, 'removed')
    enqueueing.noteRemoved(task)
    if (!isFinal(statusOf(task))) {
      if (task.envelope.group !== undefined) groups.ended(task.envelope.group, 'removed')
      if (task.envelope.run !== undefined) runs.ended(task.envelope.run, 'removed', '')
    }
    wakeWaiters(task)
  }

  const streams = new Map<string, MemoryEventStream>()
  const eventsOf = (queue: string): MemoryEventStream => {
    const stream = streams.get(queue) ?? memoryEventStream(clock, outage)
    streams.set(queue, stream)
    return stream
  }

  const storeOf = (queue: string): MemoryStore => {
    if (queues !== undefined && !queues.includes(queue)) {
      throw new BullpenError('queue_not_found', `unknown queue '${queue}'; expected one of ${queues.join(', ')}`)
    }
    const known = stores.get(queue)
    if (known !== undefined) return known
    const reports = taskReports(eventsOf(queue))
    const store = new MemoryStore({ clock, stallMs, retention, reports, onEnded, onRemoved })
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
    return task && { ...recordOf(task), ...storeOf(task.queue).places.waitsFor(task) }
  }

  const enqueueing = createMemoryEnqueueing({
    clock,
    outage,
    codec: options.codec,
    sizeLimit,
    tasks,
    storeOf,
    onStored({ expiresAt }) {
      if (expiresAt !== undefined && stopSweep === undefined) sweep()
    },
  })
  const { enqueue, enqueueBulk, enqueueAll } = enqueueing
  const outbox = new MemoryOutbox({
    clock,
    isUnreachable: () => outage.lasts,
    store: (forwarded) => enqueueing.storeForwarded(forwarded),
  })

  const { schedules, close: closeSchedules } = memorySchedules({
    clock,
    check: () => outage.check(),
    statusOf(id) {
      const task = tasks.get(id)
      return task && statusOf(task)
    },
    enqueue: (task) => void enqueueing.storeNow(task),
    async cancel({ queue, id, stoppable }) {
      const task = tasks.get(id)
      if (task !== undefined) storeOf(queue).cancel(task, { stoppable, by: 'schedule' })
    },
  })

  const groups = memoryGroups({
    clock,
    check: () => outage.check(),
    reachable: () => outage.over(),
    find,
    admit: (members) => enqueueing.admitMembers(members),
    enqueue: (task) => void enqueueing.storeNow(task),
    cancel: (rule) => storeOf(rule.queue).cancelWhere(rule),
    release: (releases) => outbox.forwardAll(releases),
    codec: options.codec,
  })

  const runs = memoryRuns({
    clock,
    check: () => outage.check(),
    reachable: () => outage.over(),
    enqueue: (forwarded) => enqueueing.storeForwarded(forwarded),
    cancel: (rule) => storeOf(rule.queue).cancelWhere(rule),
    codec: options.codec,
    admit: (planned) => enqueueing.admitMembers(planned),
  })

  return {
    enqueue,
    enqueueBulk,
    enqueueAll,

    async add(definition, input, call = {}) {
      const now = clock.now()
      const id = createTaskId(definition.queue, now, randomBytes(ID_RANDOM_BYTES))
      await enqueue(newTask(definition, input, call, { id, enqueuedAt: now, correlationId: undefined }))
      return id
    },

    find: async (id) => find(id),

    waitUntilFinished: (id, signal) => waiters.wait(id, find, signal),

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
      enqueueing.assertSize(Buffer.byteLength(JSON.stringify(envelope)))
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

    async stopDead(id, by) {
      outage.check()
      return deadChanges.stop(id, by)
    },

    async listDeadRequests(queue, limit) {
      outage.check()
      // Throws if the queue is unknown.
      storeOf(queue)
      return deadChanges.listed(queue, limit)
    },

    async countDead(queue, limit) {
      outage.check()
      return countDead(storeOf(queue)).slice(0, limit)
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
      const { bytes, accepted, removed } = store.places
      // There is no index that could drift.
      return {
        bytes,
        accepted,
        removed,
        drift: 0,
        unaccounted: accepted - tasks - removed,
        outbox: outbox.state(queue),
      }
    },

    async heldRetries(queue, tasks) {
      outage.check()
      const store = storeOf(queue)
      return tasks.map((task) => store.heldRetries(task))
    },

    events(queue) {
      // Throws if the queue is unknown.
      storeOf(queue)
      return eventsOf(queue)
    },

    schedules,
    groups: groups.groups,
    runs: runs.runs,

    // Everything is stored as a property of its owner.
    orphans: {
      async search() {
        outage.check()
        return { orphans: [], examined: 0, next: undefined }
      },
      async delete() {
        outage.check()
        return []
      },
    },

    async ping() {
      outage.check()
    },

    async close() {
      closeSchedules()
      groups.close()
      runs.close()
      stopSweep?.()
      deadChanges.close()
      for (const store of stores.values()) store.places.close()
    },

    consumer: ({ queue, concurrency, worker = 'memory', candidates }) => {
      return (run, pool) => {
        const consumer = createMemoryConsumer(
          { store: storeOf(queue), outage, concurrency, worker, candidates, inputOf: runs.inputOf },
          run,
          pool,
        )
        consumers.push({ worker, consumer })
        return consumer
      }
    },

    fail: () => outage.begin(),

    recover() {
      outage.end()
      outbox.forward()
      for (const store of stores.values()) store.places.wake()
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
