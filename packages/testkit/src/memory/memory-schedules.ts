// Stores schedules in memory, and enqueues their tasks as the clock moves.
import { randomBytes } from 'node:crypto'
import type { TaskId, TaskStatus } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import {
  type Clock,
  countTroubles,
  createSchedules,
  type DueSchedulesOptions,
  declared,
  type Editions,
  runDueSchedules,
  type ScheduleStore,
  type Schedules,
  type ScheduleWrite,
  type StoredSchedule,
  troublesOf,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { guarded } from './outage.ts'

export interface MemorySchedulesOptions {
  readonly clock: Clock
  /** Throws if the store is unreachable. */
  readonly check: () => void
  readonly statusOf: (id: TaskId) => TaskStatus | undefined
  readonly enqueue: (task: NewTask) => void
  readonly cancel: DueSchedulesOptions['cancel']
}

export interface MemorySchedules {
  readonly schedules: Schedules
  close(): void
}

type Kept = Pick<ScheduleWrite, 'queue' | 'token' | 'wakeAt'> & { readonly record: StoredSchedule['record'] }

/** How long to wait before schedules are run again after the store was unreachable, in ms. */
const RETRY_MS = 1_000

export function memorySchedules(options: MemorySchedulesOptions): MemorySchedules {
  const { clock, check, statusOf, enqueue, cancel } = options
  const kept = new Map<string, Kept>()
  let stopTimer: (() => void) | undefined
  let editions: Editions = new Map()
  let isClosed = false

  const stateOf = ({ record, token }: Kept): StoredSchedule => ({
    record,
    token,
    now: clock.now(),
    lastStatus: record.lastRun && statusOf(record.lastRun.id),
  })
  const keyOf = ({ queue, name }: Pick<ScheduleWrite, 'queue' | 'name'>): string => `${queue} ${name}`

  const store = guarded<ScheduleStore>(check, {
    now: async () => clock.now(),
    all: async () => [...kept.values()].map(stateOf),
    async due(queue, withinMs) {
      const until = clock.now() + withinMs
      const due = [...kept.values()].filter((each) => each.queue === queue && (each.wakeAt ?? Infinity) <= until)
      return { now: clock.now(), schedules: due.map(stateOf) }
    },
    async troubles(queue) {
      const own = [...kept.values()].filter((each) => each.queue === queue)
      return countTroubles(own.flatMap((each) => troublesOf(stateOf(each))))
    },
    async declare(own) {
      editions = declared(editions, own, clock.now())
      return editions
    },
    async stored({ name, digest }) {
      editions = new Map([...editions, [name, digest]])
    },
    async write(change) {
      const { queue, token, expected, record, wakeAt, add, notBefore = 0 } = change
      if (kept.get(keyOf(change))?.token !== expected) return 'conflict'
      if (clock.now() < notBefore) return 'early'
      if (add !== undefined) enqueue(add)
      if (record === undefined) kept.delete(keyOf(change))
      else kept.set(keyOf(change), { queue, token, record: structuredClone(record), wakeAt })
      setTimer()
      return 'written'
    },
  })

  /** The timer is set only if a schedule is due at some time, because otherwise a fake clock would never run out of timers. */
  const setTimer = (): void => {
    stopTimer?.()
    const wakeAt = Math.min(...[...kept.values()].map((each) => each.wakeAt ?? Infinity))
    if (wakeAt === Infinity || isClosed) return
    stopTimer = clock.after(Math.max(0, wakeAt - clock.now()), () => {
      stopTimer = undefined
      void runAll()
    })
  }

  const runAll = async (): Promise<void> => {
    const queues = new Set([...kept.values()].map(({ queue }) => queue))
    await Promise.all([...queues].map(runQueue))
    setTimer()
  }

  const runQueue = async (queue: string): Promise<void> => {
    const waitMs = await runDueSchedules({ store, sha256, randomBytes, cancel, onEnqueued: () => {} }, queue, 0).catch(
      () => undefined,
    )
    if (waitMs === 0) return
    // What is still due has to wait, for example for the end of the previous run.
    const now = clock.now()
    for (const [key, each] of kept) {
      if (each.queue !== queue || (each.wakeAt ?? Infinity) > now) continue
      kept.set(key, { ...each, wakeAt: now + (waitMs ?? RETRY_MS) })
    }
  }

  return {
    schedules: createSchedules({ store, randomBytes, sha256, onChanged: () => setTimer() }),
    close() {
      isClosed = true
      stopTimer?.()
    },
  }
}
