// Defines a task that is about to be enqueued.
import type {
  Backoff,
  Durability,
  GroupId,
  OnConflict,
  QueueLimits,
  TaskGroup,
  TaskId,
  TraceContext,
} from '@bullpen/contract'
import type { FollowUpKind } from '@bullpen/contract/internal'

/**
 * Which calls can enqueue a task with a given id. If the reply to a call was lost, the broker uses this information to recognise
 * the task that it has already stored for the same call.
 *
 * - `only`: the id was generated at random for this call, so no other call has it.
 * - `token`: the id was derived or chosen, so other calls may have it, too. Each of these callers has a different token, which is
 *   stored with the task.
 */
export type Caller = 'only' | { readonly token: string }

/**
 * Makes an enqueue idempotent: later calls with the same `key` receive the id of the first call's task, before, during and after
 * the task's run. A key applies only within its queue.
 */
export interface Idempotency {
  /** A digest of the caller's key and identity, as 22 characters of base64url. */
  readonly key: string
  /** A digest of the request, as 11 characters of base64url. A different request with the same key is rejected. */
  readonly request: string
  /** The minimum time for which the first call is remembered, in seconds. The call may be remembered for up to a half longer. */
  readonly life: number
}

/** A unique key. While a task has the key, no other task of the same definition can have it. */
export interface UniqueKey {
  /** 1 to 128 characters. */
  readonly key: string
  /**
   * How long the task has the key: until its first attempt starts, until the task ends, or for a number of milliseconds from now.
   */
  readonly until: 'started' | 'finished' | number
  readonly onConflict: OnConflict
  /**
   * The time limit, in ms, from the enqueue of the task that has the key to that task's postponed start. The limit is the
   * definition's or the call's total timeout.
   */
  readonly maxDelayMs: number | undefined
}

/** The turn of a task in a queue whose concurrency keys take turns. */
export interface Turn {
  /** The concurrency key. */
  readonly key: string
  /** How many tasks of this key start for each task of a key with the weight 1. */
  readonly weight: number
}

/** What a task needs of a limiter of its queue to start. */
export interface Need {
  /** The kind and the name of the limiter, such as `permits:db`. */
  readonly limiter: string
  /** At least 1. */
  readonly amount: number
}

/** A task that is about to be enqueued. Its id is generated before the broker is called. */
export interface NewTask {
  readonly id: TaskId
  /** If omitted, a task that already exists counts as another caller's. */
  readonly caller?: Caller | undefined
  /**
   * Whether an earlier call with this id may have stored the task. If so, and the task has been deleted since, nothing is stored as
   * long as the call is made within 20 s of the task's enqueue. If the caller is `only`, every call after the first must set this
   * flag: without it, the broker does not look for an earlier task, and would store the task twice. Defaults to false.
   */
  readonly isRepeat?: boolean | undefined
  /** If omitted, every call stores a task of its own. */
  readonly idempotency?: Idempotency | undefined
  readonly unique?: UniqueKey | undefined
  /**
   * The queue's limits. If one of them is reached, the task is refused. If omitted, the task is refused only if a limit of the
   * broker itself is reached. Workers' brokers do not have any limits.
   */
  readonly limits?: QueueLimits | undefined
  /**
   * If true, the queue counts as full: the call resolves only if an earlier call has stored the task, or if another task has its
   * unique key. Otherwise, the task is refused with QueueFullError.
   */
  readonly onlyExisting?: boolean
  /** The name of the request's API key, to which `limits.perApiKey` applies. If omitted, `limits.perApiKey` does not apply. */
  readonly apiKeyName?: string | undefined
  /** Whether the task's token of `limits.perApiKey.enqueueRate` has been taken, so that the call takes none. Defaults to false. */
  readonly hasToken?: boolean | undefined
  /** Whether the task's child tasks may be counted for its API key, so that the key's name is stored with the task. Defaults to false. */
  readonly passesOnApiKey?: boolean | undefined
  /** The group whose member this task is. */
  readonly group?: TaskGroup | undefined
  /** The task or group because of whose end this task is enqueued, if that is known before an outbox enqueues it. */
  readonly followUpOf?: TaskId | GroupId | undefined
  /** The dead task in another queue of which this task is a copy. */
  readonly retryOf?: TaskId | undefined
  /** The tasks to enqueue when this task has ended. Defaults to none. */
  readonly followUps?: readonly NewFollowUp[] | undefined
  readonly task: string
  readonly version: number
  readonly queue: string
  readonly input: unknown
  readonly maxAttempts: number
  /** The caller's own backoff. By default, the backoff of the definition applies. */
  readonly backoff?: Backoff | undefined
  /** From 0 to 9. Waiting tasks with a smaller number start first. */
  readonly priority: number
  /** When the call resolves. It is not stored. Defaults to 'primary'. */
  readonly durability?: Durability | undefined
  /** Milliseconds since 1970. */
  readonly enqueuedAt: number
  readonly meta: Readonly<Record<string, string>> | undefined
  readonly tags?: readonly string[] | undefined
  /** About how many events the stream of the queue keeps. If omitted, the task has no events. */
  readonly events?: number | undefined
  readonly correlationId: string | undefined
  readonly traceContext?: TraceContext | undefined
  /** How many tasks in a row the follow-ups of definitions have enqueued, up to this one. Defaults to 0. */
  readonly depth?: number | undefined
  readonly concurrencyKey: string | undefined
  /** The task's turn, if its queue is fair and the task has a concurrency key. */
  readonly turn?: Turn | undefined
  /** What the task needs to start besides a slot. By default, nothing. */
  readonly needs?: readonly Need[] | undefined
  /** The services on whose circuit breakers the task depends, sorted. Undefined if there are none. */
  readonly services?: readonly string[] | undefined
  readonly delayMs: number | undefined
  readonly timeoutMs: number | 'none' | undefined
  readonly heartbeatMs: number | 'none' | undefined
  /** The caller's own queue timeout, which starts when the task becomes ready: at its enqueueing time plus its delay. */
  readonly queueMs: number | 'none' | undefined
  /** The caller's own total timeout, which starts when the task is enqueued. */
  readonly totalMs: number | 'none' | undefined
  /** When the task expires unless it has been started, in ms since 1970. Used for the index of expiries. */
  readonly expiresAt: number | undefined
}

/** A task that is stored with another one and enqueued when that one has ended. It gets its id and its times only then. */
export type FollowUpTask = Omit<
  NewTask,
  'id' | 'enqueuedAt' | 'expiresAt' | 'caller' | 'idempotency' | 'unique' | 'durability'
> & {
  /** How long the task may wait for its first start from the time when it is ready, in ms. */
  readonly expiresInMs: number | undefined
}

export interface NewFollowUp {
  readonly on: FollowUpKind
  readonly task: FollowUpTask
}

/**
 * A task that was deleted is remembered until this time has passed since its enqueue, in ms. A client over Redis repeats a call for
 * 10 s by default, and a broker waits for less than a second for the reply to each try.
 */
export const REPEATS_WITHIN_MS = 20_000
