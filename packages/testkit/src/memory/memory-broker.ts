/**
 * An in-memory broker with the same semantics as the Redis broker. It runs on the test's clock, so delays, retries, sweeps and
 * the recovery of lost tasks happen when the test moves that clock. The same conformance suite tests both brokers.
 */
import { randomBytes } from 'node:crypto'
import { BullpenError, type FinalStatus, isFinal, type TaskId, type TaskRecord } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { ListQuery } from '@bullpen/engine'
import {
  type Breakers,
  definitionLimiter,
  type KeyQuery,
  newTask,
  type Orphans,
  permitsLimiter,
  textOfResult,
  whyWaiting,
} from '@bullpen/engine/internal'
import { DeadChanges } from './dead-tasks/dead-changes.ts'
import { memoryDeadTasks } from './dead-tasks/memory-dead-tasks.ts'
import { createMemoryEnqueueing } from './enqueueing/memory-enqueueing.ts'
import { type MemoryEventStream, memoryEventStream } from './events/memory-event-stream.ts'
import { taskReports } from './events/task-reports.ts'
import type { MemoryBroker, MemoryBrokerOptions } from './memory-broker-options.ts'
import { memoryCancels } from './memory-cancels.ts'
import { memoryExpirer } from './memory-expirer.ts'
import { memoryGroups } from './memory-groups.ts'
import { concurrencyKeys } from './memory-keys.ts'
import { countTasks, listTasks } from './memory-listing.ts'
import { MemoryOutbox } from './memory-outbox.ts'
import { memoryRuns } from './memory-runs.ts'
import { memorySchedules } from './memory-schedules.ts'
import { memoryWorkers } from './memory-workers.ts'
import { guarded, Outage } from './outage.ts'
import { MemoryStore } from './store/memory-store.ts'
import { recordOf, type StoredTask, statusOf } from './store/stored-task.ts'
import { Waiters } from './waiters.ts'

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
  const check = (): void => outage.check()
  const tasks = new Map<TaskId, StoredTask>()
  const stores = new Map<string, MemoryStore>()
  const deadChanges = new DeadChanges(clock)
  const waiters = new Waiters<TaskId>()

  const onEnded = (task: StoredTask): void => {
    waiters.wake(task.id)
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
    waiters.wake(task.id)
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

  const expirer = memoryExpirer({
    clock,
    sweepMs,
    stores,
    isUnreachable: () => outage.lasts,
    onExpired: options.onExpired,
  })

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
      if (expiresAt !== undefined) expirer.watch()
    },
  })
  const { enqueue, enqueueBulk, enqueueAll, takeInQueues } = enqueueing
  const outbox = new MemoryOutbox({
    clock,
    isUnreachable: () => outage.lasts,
    store: (forwarded) => enqueueing.storeForwarded(forwarded),
  })

  const { schedules, close: closeSchedules } = memorySchedules({
    clock,
    check,
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
    check,
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
    check,
    reachable: () => outage.over(),
    enqueue: (forwarded) => enqueueing.storeForwarded(forwarded),
    cancel: (rule) => storeOf(rule.queue).cancelWhere(rule),
    codec: options.codec,
    admit: (planned) => enqueueing.admitMembers(planned),
  })

  const { workersOf, ...workers } = memoryWorkers({ clock, outage, tasks, storeOf, inputOf: runs.inputOf })

  const parts = { clock, tasks, storeOf }

  return {
    enqueue,
    enqueueBulk,
    enqueueAll,
    takeInQueues,

    async add(definition, input, call = {}) {
      const now = clock.now()
      const id = createTaskId(definition.queue, now, randomBytes(ID_RANDOM_BYTES))
      await enqueue(newTask(definition, input, call, { id, enqueuedAt: now, correlationId: undefined }))
      return id
    },

    waitUntilFinished: (id, signal) =>
      waiters.wait(
        id,
        () => find(id),
        ({ status }) => isFinal(status),
        signal,
      ),

    ...guarded(check, {
      ...memoryCancels(parts),

      ...memoryDeadTasks({ ...parts, deadChanges, assertSize: enqueueing.assertSize }),

      find: async (id: TaskId) => find(id),

      async waitsFor({ id, queue }: TaskRecord) {
        const task = tasks.get(id)
        return task && whyWaiting({ ...storeOf(queue).places.waitFacts(task), ...workersOf(queue) })
      },

      list: async (query: ListQuery) => listTasks(storeOf(query.queue), query),

      counts: async (queue: string) => countTasks(storeOf(queue)),

      async totals(queue: string) {
        const store = storeOf(queue)
        const stored = Object.values(countTasks(store)).reduce((sum, count) => sum + count, 0)
        const { bytes, accepted, removed, ended } = store.places
        // There is no index that could drift.
        return {
          ...{ bytes, accepted, removed, ended, drift: 0 },
          recovered: store.recovered,
          unaccounted: accepted - stored - removed,
          outbox: outbox.state(queue),
        }
      },

      async heldRetries(queue: string, names: readonly string[]) {
        const store = storeOf(queue)
        return names.map((task) => store.heldRetries(task))
      },

      concurrencyKeys: async (query: KeyQuery) => concurrencyKeys(storeOf(query.queue), query, clock.now()),

      async ping() {},
    }),

    events(queue) {
      // Throws if the queue is unknown.
      storeOf(queue)
      return eventsOf(queue)
    },

    schedules,
    groups: groups.groups,
    runs: runs.runs,

    breakers: guarded<Breakers>(check, {
      list: async (queue, defined) => storeOf(queue).listBreakers(defined),
      set: async ({ queue, ...setting }) => storeOf(queue).setBreaker(setting),
    }),

    // Everything is stored as a property of its owner.
    orphans: guarded<Orphans>(check, {
      search: async () => ({ orphans: [], examined: 0, next: undefined }),
      delete: async () => [],
    }),

    async close() {
      closeSchedules()
      groups.close()
      runs.close()
      expirer.close()
      deadChanges.close()
      for (const store of stores.values()) store.places.close()
    },

    limitKeys: (queue, limits, concurrencyKey) => storeOf(queue).places.setKeyLimits(limits, concurrencyKey),

    limitPermits(queue, permits) {
      const { places } = storeOf(queue)
      for (const [name, count] of Object.entries(permits)) places.setCapacity(permitsLimiter(name), count)
    },

    limitDefinition: (queue, task, concurrency) =>
      storeOf(queue).places.setCapacity(definitionLimiter(task), concurrency),

    ...workers,

    fail: () => outage.begin(),

    recover() {
      outage.end()
      outbox.forward()
      for (const store of stores.values()) store.places.wake()
    },
  }
}
