// A broker in memory, with the semantics of the one on Redis: for tests, whose clock it runs on.
import { randomBytes } from 'node:crypto'
import {
  BullpenError,
  type CallOptions,
  type InputOf,
  isFinal,
  type TaskDefinition,
  type TaskId,
  type TaskRecord,
} from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { Broker, NewTask } from '@bullpen/engine'
import { type CancelRule, type Clock, newTask, type PoolOptions } from '@bullpen/engine/internal'
import { type Faults, memoryFeed } from './memory-consumer.ts'
import { listTasks } from './memory-listing.ts'
import { MemoryStore } from './memory-store.ts'
import { Outage } from './outage.ts'
import { recordOf, type StoredTask, storedTask } from './stored-task.ts'

export interface MemoryBrokerOptions {
  readonly clock: Clock
  /** A task for another is refused with `queue_not_found`. Default: any is known. */
  readonly queues?: readonly string[]
  /** The most bytes that one task's stored data may have. Default: no limit. */
  readonly sizeLimit?: number
  /** From the end of a process, or the loss of a lock, until its tasks are found again, in ms. Default 6,000. */
  readonly stallMs?: number
  /** How often tasks are looked for that have waited longer than their queue timeout, in ms. Default 2,000. */
  readonly sweepMs?: number
  /** Hears of the tasks that the sweep has ended. */
  readonly onExpired?: (expired: { readonly queue: string; readonly id: TaskId; readonly task: string }) => void
}

export interface MemoryFeedOptions {
  readonly queue: string
  /** How many tasks are taken at once, until the pool resizes it. */
  readonly concurrency: number
  /** Of the process that the pool stands for; {@link MemoryBroker.kill} ends it by this name. Default 'memory'. */
  readonly process?: string
}

/** Its methods reject and take their time as those of the broker on Redis do; faults are injected by the others. */
export interface MemoryBroker extends Broker {
  /** Enqueues a task as a caller would, and gives its id. @throws BullpenError for a call that contradicts itself. */
  add<D extends TaskDefinition>(definition: D, input: InputOf<D>, call?: CallOptions): Promise<TaskId>
  /** What brings a pool its tasks: `makePool`'s option. */
  feed(options: MemoryFeedOptions): PoolOptions['consumer']
  /** The store can't be reached: every method rejects with `redis_unavailable`, pools take nothing and wait. */
  fail(): void
  /** It can be reached again. */
  recover(): void
  /** Fetching fails for good in every pool; each starts it again by itself. */
  breakFeeds(): void
  /** The lock of a running task is gone: its pool is told, and after `stallMs` another start takes it. */
  loseLock(id: TaskId): void
  /** As SIGKILL to a process: nothing of its pools is heard any more; their tasks are found again after `stallMs`. */
  kill(process: string): void
}

const STALL_MS = 6_000
const SWEEP_MS = 2_000

export function memoryBroker(options: MemoryBrokerOptions): MemoryBroker {
  const { clock, queues, sizeLimit = Number.POSITIVE_INFINITY, stallMs = STALL_MS, sweepMs = SWEEP_MS } = options
  const outage = new Outage()
  const tasks = new Map<TaskId, StoredTask>()
  const shelves = new Map<string, MemoryStore>()
  const feeds: { readonly process: string; readonly feed: Faults }[] = []
  const waiting = new Map<TaskId, Set<() => void>>()
  const cancels = new Map<string, { readonly rule: CancelRule; doneAt: number | undefined }>()
  let stopSweep: (() => void) | undefined

  const tell = ({ id }: StoredTask): void => {
    for (const wake of waiting.get(id) ?? []) wake()
  }

  const shelf = (queue: string): MemoryStore => {
    if (queues !== undefined && !queues.includes(queue)) {
      throw new BullpenError(
        'queue_not_found',
        `no task of the catalogue uses the queue '${queue}'; known are ${queues.join(', ')}`,
      )
    }
    const found = shelves.get(queue) ?? new MemoryStore({ clock, stallMs, onEnded: tell })
    shelves.set(queue, found)
    return found
  }

  /** Goes on as long as anything may expire, so that a clock has nothing to do otherwise. */
  const sweep = (): void => {
    stopSweep = clock.after(sweepMs, () => {
      stopSweep = undefined
      // A store that can't be reached is swept later.
      const found = [...shelves.values()].map((each) => (outage.lasts ? undefined : each.expire('sweep:memory')))
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

  const enqueue = async (task: NewTask): Promise<void> => {
    outage.check()
    const place = shelf(task.queue)
    const stored = storedTask(task)
    const bytes = Buffer.byteLength(JSON.stringify(stored.envelope))
    if (bytes > sizeLimit) {
      throw new BullpenError(
        'payload_too_large',
        `the task would take ${bytes} bytes in Redis; the limit is ${sizeLimit}`,
      )
    }
    if (tasks.has(task.id)) return
    tasks.set(task.id, stored)
    place.add(stored)
    if (task.expiresAt !== undefined && stopSweep === undefined) sweep()
  }

  return {
    enqueue,

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
      const wakes = waiting.get(id) ?? new Set()
      waiting.set(id, wakes.add(wake))
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
        if (wakes.size === 0) waiting.delete(id)
      }
    },

    async cancel(id, options) {
      outage.check()
      const task = tasks.get(id)
      return task === undefined ? 'not_found' : shelf(task.queue).cancel(task, options)
    },

    async cancelMany({ by = 'memory', ...filter }) {
      outage.check()
      const now = clock.now()
      const id = createTaskId(filter.queue, now, randomBytes(ID_RANDOM_BYTES))
      const rule = { ...filter, id, by, at: now }
      shelf(filter.queue).cancelWhere(rule)
      cancels.set(id, { rule, doneAt: undefined })
      return rule
    },

    async cancelProgress(id) {
      outage.check()
      const found = cancels.get(id)
      if (found === undefined) return undefined
      const { ended, isDone } = shelf(found.rule.queue).progressOf(found.rule)
      if (isDone) found.doneAt ??= clock.now()
      return { rule: found.rule, ended, doneAt: found.doneAt }
    },

    async list(query) {
      outage.check()
      return listTasks(shelf(query.queue), query)
    },

    async counts(queue) {
      outage.check()
      const { length: waits } = shelf(queue).in('waiting')
      const [active, delayed, completed, failed] = (['active', 'delayed', 'completed', 'failed'] as const).map(
        (place) => shelf(queue).in(place).length,
      )
      return {
        waiting: waits,
        active: active ?? 0,
        scheduled: delayed ?? 0,
        retrying: 0,
        completed: completed ?? 0,
        dead: failed ?? 0,
        cancelled: 0,
        expired: 0,
      }
    },

    async ping() {
      outage.check()
    },

    async close() {
      stopSweep?.()
      for (const each of shelves.values()) each.close()
    },

    feed: ({ queue, concurrency, process = 'memory' }) => {
      return (work, pool) => {
        const feed = memoryFeed({ shelf: shelf(queue), outage, concurrency }, work, pool)
        feeds.push({ process, feed })
        return feed
      }
    },

    fail: () => outage.begin(),

    recover() {
      outage.end()
      for (const each of shelves.values()) each.wake()
    },

    breakFeeds() {
      for (const { feed } of feeds) feed.break()
    },

    loseLock(id) {
      const task = tasks.get(id)
      const owner = task?.owner
      if (task === undefined || owner === undefined) return
      shelf(task.queue).orphan(task, owner)
      owner.lockLost()
    },

    kill(process) {
      for (const { feed } of feeds.filter((each) => each.process === process)) feed.kill()
    },
  }
}
