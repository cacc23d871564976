// What the engine asks of the world: time, chance, a place for events, and a broker that keeps tasks.
import type { CancelReason, Progress, TaskEvent, TaskId, TaskRecord, TaskStatus } from '@bullpen/contract'
import type { CancelAnswer } from '@bullpen/contract/internal'
import type { CancelFilter, CancelProgress, CancelRule } from '../task/cancel-filter.ts'

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Milliseconds since any fixed moment, never going back; fractions count. */
  monotonic(): number
  /** Milliseconds since 1970 at a moment of the monotonic clock; cheaper than asking for both. */
  at(monotonic: number): number
  /** Calls back once after `ms`; the returned function prevents it. */
  after(ms: number, callback: () => void): () => void
  /** A timer that is set again and again, and calls back each time that it rings. */
  timer(ring: () => void): Timer
}

export interface Timer {
  /** Rings once, `ms` from now; replaces what was set before. */
  set(ms: number): void
  /** It will not ring. */
  clear(): void
  /** Cleared for good; nothing of it is left. */
  close(): void
}

/** A number from 0 (included) to 1 (excluded). */
export type Random = () => number

/** Hears of everything that happens; must neither throw nor wait. */
export type EventSink = (event: TaskEvent) => void

/** A task on its way into the queue; its id is made before the broker is asked. */
export interface NewTask {
  readonly id: TaskId
  readonly task: string
  readonly version: number
  readonly queue: string
  readonly input: unknown
  readonly maxAttempts: number
  readonly enqueuedAt: number
  readonly meta: Readonly<Record<string, string>> | undefined
  /** Absent: none. */
  readonly tags?: readonly string[] | undefined
  readonly correlationId: string | undefined
  readonly delayMs: number | undefined
  readonly timeoutMs: number | 'none' | undefined
  readonly heartbeatMs: number | 'none' | undefined
  /** From when it is ready, which is its enqueueing and its delay. The caller's own, for the slot that takes it. */
  readonly queueMs: number | 'none' | undefined
  /** From the enqueueing. */
  readonly totalMs: number | 'none' | undefined
  /** When it expires unless it has been started, in ms since 1970: for the sweep. */
  readonly expiresAt: number | undefined
}

export interface ListQuery {
  readonly queue: string
  readonly status: TaskStatus
  /** 1 to 200. */
  readonly limit: number
  /** From the page before; opaque. */
  readonly cursor: string | undefined
}

export interface Page {
  readonly tasks: readonly TaskRecord[]
  readonly next: string | undefined
}

/**
 * Keeps tasks. Every method rejects with BullpenError `redis_unavailable` within the broker's command timeout when the
 * store can't be reached.
 */
export interface Broker {
  /** Stores the task; the same id twice stores it once. One round trip. When it rejects, the task may have been stored. */
  enqueue(task: NewTask): Promise<void>
  /** The task as it stands, or undefined. One round trip, whatever the queue's length. */
  find(id: TaskId): Promise<TaskRecord | undefined>
  /** The task once its status is final, or as it stands when the signal aborts; undefined when there is none. */
  waitUntilFinished(id: TaskId, signal: AbortSignal): Promise<TaskRecord | undefined>
  /**
   * Ends what waits, at once; asks whoever runs it to stop, durably. `stoppable`: whether a running one can be, which short
   * tasks can't. Atomic; one round trip; twice is once.
   */
  cancel(id: TaskId, how: { readonly stoppable: boolean }): Promise<CancelAnswer>
  /**
   * Cancels all that the filter fits. Durable first. When it resolves, none of them starts any more, whatever any worker
   * has heard, and each is told as cancelled; moving them takes longer, and is told by {@link cancelProgress}. Those that
   * run are told to stop where they can be; those that can't are not started again. Tasks that are enqueued afterwards are
   * not covered. Takes some ms; up to 2.5 s when a worker does not answer. Twice is once. When it rejects, it may have
   * been requested. @throws BullpenError `queue_not_found`.
   */
  cancelMany(filter: CancelFilter): Promise<CancelRule>
  /** How far a cancel by filter is; undefined when there is none of this id, or a day after it was done. One round trip. */
  cancelProgress(id: string): Promise<CancelProgress | undefined>
  /** @throws BullpenError `invalid_cursor` for a cursor of another listing. */
  list(query: ListQuery): Promise<Page>
  /** How many tasks of a queue are in each status. `retrying` ones count as scheduled: they share a set. One round trip. */
  counts(queue: string): Promise<Readonly<Record<TaskStatus, number>>>
  /** One round trip; rejects when the store does not answer. */
  ping(): Promise<void>
  close(): Promise<void>
}

/** A task that a pool has taken: it holds the lock. */
export interface FetchedTask {
  readonly id: TaskId
  readonly task: string
  /** As stored; unread. */
  readonly envelope: unknown
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number
  readonly fencingToken: number
  readonly attempt: number
  readonly maxAttempts: number
  /** When it became ready to run, its enqueueing plus its delay, in ms since 1970; known for the first start alone. */
  readonly readyAt: number | undefined
  /** A cancel of it was heard of: it may not start. */
  readonly cancelled?: CancelReason | undefined
  progress(progress: Progress): Promise<void>
  readonly steps: KeptSteps
}

/** The results of a task's finished steps, as JSON. */
export interface KeptSteps {
  /** By step. One round trip. */
  read(): Promise<ReadonlyMap<string, string>>
  /**
   * Keeps a result where there is none for this step yet, and gives back the one that is there; undefined when this start
   * holds the lock no more: then nothing was written. Atomic; one round trip.
   */
  keep(step: string, result: string): Promise<string | undefined>
}
