// An in-memory broker for tests of the API. Tests can make it fail and can change its tasks.
import {
  type AttemptRecord,
  BullpenError,
  EnqueueRateError,
  isFinal,
  type Orphan,
  QueueFullError,
  type ReachedLimit,
  type TaskId,
  type TaskRecord,
  type TaskStatus,
  type WaitsFor,
} from '@bullpen/contract'
import { createTaskId, TASK_STATUSES } from '@bullpen/contract/internal'
import type { Broker, NewTask } from '@bullpen/engine'
import {
  type CancelProgress,
  type DeadMatches,
  type DeadProgress,
  type DeadQuery,
  type DeadTaskAnswer,
  type FingerprintCount,
  type KeyPage,
  type KeyQuery,
  queueOfAll,
  type ReleasedFollowUp,
  type RetryOptions,
} from '@bullpen/engine/internal'
import { fakeClock } from '@bullpen/testkit'
import {
  type MemoryEventStream,
  memoryEventStream,
  memoryGroups,
  memoryRuns,
  memorySchedules,
} from '@bullpen/testkit/internal'

export interface FakeBroker extends Broker {
  readonly enqueued: NewTask[]
  /** What has followed from the ends of groups. */
  readonly released: ReleasedFollowUp[]
  /** The streams of events, by queue. */
  readonly streams: Map<string, MemoryEventStream>
  readonly cancels: CancelProgress[]
  /** The requester of each cancellation of a single task. */
  readonly cancelledBy: (string | undefined)[]
  /** The result of each count of matching dead tasks. */
  deadMatches: DeadMatches
  /** The requests to change dead tasks. */
  readonly deadRequests: DeadProgress[]
  /** The query of each search for dead tasks. */
  readonly searches: DeadQuery[]
  /** The counts of dead tasks, by queue. */
  readonly fingerprints: Map<string, readonly FingerprintCount[]>
  /** The queries for concurrency keys, and what each of them returns. */
  readonly keyQueries: KeyQuery[]
  keyPage: KeyPage
  /** The options of each retry. */
  readonly retries: RetryOptions[]
  /** What a search for orphans finds, one on each page. */
  readonly orphaned: Orphan[]
  /** How the next calls fail. */
  trouble: 'none' | 'down' | 'drains' | 'full' | 'queue full' | 'rate' | 'limited' | 'hangs' | 'breaks'
  /** Why tasks do not run. */
  reason: WaitsFor | undefined
  /** The limit that the queue has reached if `trouble` is 'queue full'. */
  reached: ReachedLimit
  /** How many callers are waiting for a task to end. `firstWaiter` resolves when the first one starts to wait. */
  waiting: number
  readonly firstWaiter: Promise<void>
  put(record: Partial<TaskRecord> & { readonly id: TaskId }): TaskRecord
  change(id: TaskId, changes: Partial<TaskRecord>): void
  remove(id: TaskId): void
}

export const SECRET = 'password=hunter2'

export function fakeBroker(): FakeBroker {
  const records = new Map<string, TaskRecord>()
  const wakes = new Set<() => void>()
  const firstWaiter = Promise.withResolvers<void>()

  async function answer<T>(value: () => T): Promise<T> {
    if (broker.trouble === 'down') throw new BullpenError('redis_unavailable', 'Redis did not respond: ECONNREFUSED')
    if (broker.trouble === 'drains') throw new BullpenError('queue_draining', 'the queue drains')
    if (broker.trouble === 'queue full') throw new QueueFullError(broker.reached)
    if (broker.trouble === 'rate') {
      const rate = { max: 100, perMs: 60_000 }
      throw new EnqueueRateError({ apiKeyName: 'shop', queue: 'cpu', rate, retryAfterMs: 600 })
    }
    if (broker.trouble === 'full') throw new BullpenError('redis_full', 'Redis is full')
    if (broker.trouble === 'limited') throw new BullpenError('too_many_cancels', 'the queue has 200 cancellations')
    if (broker.trouble === 'breaks') throw new Error(`cannot read properties of undefined, ${SECRET}`)
    if (broker.trouble === 'hangs') await new Promise(() => {})
    return value()
  }

  function onDead(id: TaskId, act: () => unknown): DeadTaskAnswer {
    const record = records.get(id)
    if (record === undefined) return 'not_found'
    if (record.status !== 'dead') return 'not_dead'
    act()
    return 'done'
  }

  function check(): void {
    if (broker.trouble === 'down') throw new BullpenError('redis_unavailable', 'Redis did not respond: ECONNREFUSED')
  }

  const { schedules, close: closeSchedules } = memorySchedules({
    clock: fakeClock(Date.now()),
    check,
    statusOf: (id) => records.get(id)?.status,
    enqueue: (task) => void broker.enqueue(task),
    cancel: async () => {},
  })

  const { groups, close: closeGroups } = memoryGroups({
    clock: fakeClock(Date.now()),
    check() {
      if (broker.trouble === 'down') throw new BullpenError('redis_unavailable', 'Redis did not respond: ECONNREFUSED')
    },
    reachable: async () => {},
    find: (id) => records.get(id),
    admit() {
      if (broker.trouble === 'queue full') throw new QueueFullError(broker.reached)
    },
    enqueue: (task) => void broker.enqueue(task),
    cancel: () => {},
    release: (releases) => broker.released.push(...releases),
    codec: undefined,
  })

  const { runs, close: closeRuns } = memoryRuns({
    clock: fakeClock(Date.now()),
    check,
    reachable: async () => {},
    enqueue: ({ task }) => void broker.enqueue(task),
    cancel: () => {},
    codec: undefined,
    admit() {
      if (broker.trouble === 'queue full') throw new QueueFullError(broker.reached)
    },
  })

  const broker: FakeBroker = {
    enqueued: [],
    released: [],
    streams: new Map(),
    cancels: [],
    cancelledBy: [],
    deadMatches: { matching: 7, exact: true },
    deadRequests: [],
    searches: [],
    fingerprints: new Map(),
    orphaned: [],
    keyQueries: [],
    keyPage: { now: 0, keys: [], waitingKeys: 0, waitingTasks: 0, exact: true, next: undefined },
    retries: [],
    trouble: 'none',
    reason: undefined,
    reached: { queue: 'cpu', limit: 'maxTasks', max: 1_000, found: 1_002 },
    waiting: 0,
    firstWaiter: firstWaiter.promise,
    put(given) {
      const record = { ...blank, ...given }
      records.set(record.id, record)
      return record
    },
    change(id, changes) {
      const record = records.get(id)
      if (record === undefined) throw new Error(`no task ${id}`)
      records.set(id, { ...record, ...changes })
      for (const wake of wakes) wake()
    },
    remove: (id) => void records.delete(id),
    enqueue: (task) =>
      answer(() => {
        broker.enqueued.push(task)
        const status: TaskStatus = task.delayMs === undefined ? 'waiting' : 'scheduled'
        const {
          id,
          task: name,
          version,
          queue,
          input,
          enqueuedAt,
          correlationId,
          concurrencyKey,
          maxAttempts,
          priority,
        } = task
        const given = { enqueuedAt, correlationId, concurrencyKey, maxAttempts, priority }
        broker.put({ id, task: name, version, queue, status, input, ...given })
        return { id, action: 'created' }
      }),
    enqueueBulk: (tasks) => Promise.allSettled(tasks.map(broker.enqueue)),
    enqueueAll: async (tasks) => {
      queueOfAll(tasks)
      return Promise.all(tasks.map(broker.enqueue))
    },
    takeInQueues: () => undefined,
    find: (id) => answer(() => records.get(id)),
    waitsFor: (task) => answer(() => broker.reason ?? task.waitsFor),
    async waitUntilFinished(id, signal) {
      broker.waiting++
      try {
        for (;;) {
          // The listener is added before the task is read, so that no change in between is missed.
          const { promise: changed, resolve } = Promise.withResolvers<void>()
          wakes.add(resolve)
          signal.addEventListener('abort', () => resolve(), { once: true })
          const record = await answer(() => records.get(id))
          if (record === undefined || isFinal(record.status) || signal.aborted) return record
          firstWaiter.resolve()
          await changed
          wakes.delete(resolve)
        }
      } finally {
        broker.waiting--
      }
    },
    retry: (id, options) =>
      answer(() =>
        onDead(id, () => {
          broker.retries.push(options)
          if (options.copy !== undefined) return
          const { status: _, ...record } = records.get(id) as TaskRecord
          const input = options.edit === undefined ? record.input : options.edit.input
          records.set(id, { ...record, status: 'waiting', input })
        }),
      ),
    searchDead: (query) =>
      answer(() => {
        broker.searches.push(query)
        return {
          tasks: [...records.values()].filter(({ status }) => status === 'dead').slice(0, query.limit),
          next: 'more',
        }
      }),
    countMatchingDead: () => answer(() => broker.deadMatches),
    changeDead: (change) =>
      answer(() => {
        const request = { ...change, id: createTaskId(change.filter.queue, 0, new Uint8Array(10)), at: 0 }
        broker.deadRequests.push({ request, changed: 0, doneAt: undefined })
        return request
      }),
    deadProgress: (id) => answer(() => broker.deadRequests.find(({ request }) => request.id === id)),
    stopDead: (id, stoppedBy) =>
      answer(() => {
        const at = broker.deadRequests.findIndex(({ request }) => request.id === id)
        const found = broker.deadRequests[at]
        if (found === undefined || found.doneAt !== undefined) return found
        const stopped = { ...found, doneAt: 1, stoppedBy }
        broker.deadRequests[at] = stopped
        return stopped
      }),
    listDeadRequests: (queue, limit) =>
      answer(() =>
        broker.deadRequests
          .filter(({ request }) => request.filter.queue === queue)
          .toReversed()
          .slice(0, limit),
      ),
    countDead: (queue, limit) => answer(() => (broker.fingerprints.get(queue) ?? []).slice(0, limit)),
    deleteDead: (id) => answer(() => onDead(id, () => records.delete(id))),
    cancel: (id, { stoppable, by }) =>
      answer(() => {
        broker.cancelledBy.push(by)
        const record = records.get(id)
        if (record === undefined) return 'not_found'
        if (isFinal(record.status)) return 'already_ended'
        if (record.status === 'active') return stoppable ? 'cancelling' : 'not_cancellable'
        broker.change(id, { status: 'cancelled' })
        return 'cancelled'
      }),
    cancelMany: (filter) =>
      answer(() => {
        const rule = {
          ...filter,
          by: filter.by ?? 'fake',
          id: createTaskId(filter.queue, filter.before, new Uint8Array(10)),
          at: 0,
        }
        broker.cancels.push({ rule, ended: 3, doneAt: undefined })
        return rule
      }),
    cancelProgress: (id) => answer(() => broker.cancels.find(({ rule }) => rule.id === id)),
    list: ({ queue, status, limit, cursor = '0' }) =>
      answer(() => {
        if (!/^\d+$/.test(cursor))
          throw new BullpenError('invalid_cursor', 'the cursor does not belong to this listing')
        const all = [...records.values()].filter((record) => record.queue === queue && record.status === status)
        const end = Number(cursor) + limit
        return { tasks: all.slice(Number(cursor), end), next: end < all.length ? String(end) : undefined }
      }),
    counts: (queue) =>
      answer(() => {
        const counts = Object.fromEntries(TASK_STATUSES.map((status) => [status, 0])) as Record<TaskStatus, number>
        for (const record of records.values()) if (record.queue === queue) counts[record.status]++
        return counts
      }),
    totals: (queue) =>
      answer(() => {
        const all = [...records.values()].filter((record) => record.queue === queue)
        const accepted = all.length
        return {
          bytes: 512 * accepted,
          accepted,
          removed: 0,
          ended: all.filter(({ status }) => isFinal(status)).length,
          recovered: 0,
          drift: 0,
          unaccounted: 0,
          outbox: { entries: 0, oldestAt: undefined },
        }
      }),
    concurrencyKeys: (query) =>
      answer(() => {
        broker.keyQueries.push(query)
        return broker.keyPage
      }),
    heldRetries: (_queue, tasks) => answer(() => tasks.map(() => 0)),
    schedules,
    orphans: {
      search: (cursor = '0') =>
        answer(() => {
          if (!/^\d+$/.test(cursor)) throw new BullpenError('invalid_cursor', 'the cursor does not belong to a search')
          const at = Number(cursor)
          const orphans = broker.orphaned.slice(at, at + 1)
          return { orphans, examined: 10, next: at + 1 < broker.orphaned.length ? String(at + 1) : undefined }
        }),
      delete: (refs) =>
        answer(() =>
          refs.filter((ref) =>
            broker.orphaned.some(({ key, entry, certain }) => certain && key === ref.key && entry === ref.entry),
          ),
        ),
    },
    events: (queue) => {
      const stream = broker.streams.get(queue) ?? memoryEventStream({ now: Date.now }, { check })
      broker.streams.set(queue, stream)
      return stream
    },
    groups,
    runs,
    ping: () => answer(() => undefined),
    async close() {
      closeSchedules()
      closeGroups()
      closeRuns()
    },
  }
  return broker
}

const blank: Omit<TaskRecord, 'id'> = {
  task: 'math.square',
  version: 1,
  queue: 'cpu',
  status: 'waiting',
  fencingToken: 0,
  attemptsMade: 0,
  maxAttempts: 5,
  priority: 0,
  input: { n: 4 },
  meta: {},
  tags: [],
  correlationId: undefined,
  concurrencyKey: undefined,
  enqueuedAt: 0,
  dueAt: undefined,
  startedAt: undefined,
  endedAt: undefined,
  progress: undefined,
  output: undefined,
  attempts: [],
}

export function attemptRecord(more: Partial<AttemptRecord> = {}): AttemptRecord {
  return {
    fencingToken: 1,
    attempt: 1,
    counted: true,
    state: 'DONE_SUCCESS',
    worker: 'host-1',
    startedAt: 1_000,
    endedAt: 2_000,
    ...more,
  }
}
