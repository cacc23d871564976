// Defines what a diagnosis is made from, and what one check returns.
import type { Finding, PerConcurrencyKey, TaskRecord, TaskStatus } from '@bullpen/contract'
import type { OutboxState } from '../ports/broker/broker.ts'
import type { Need } from '../ports/broker/new-task.ts'
import type { UnattachedWorkers } from '../ports/broker/queue-head.ts'
import type { QueueSettings, RegisteredWorker } from '../ports/fleet.ts'
import type { ScheduleChange } from '../schedule/schedule-diff.ts'
import type { Trouble } from '../schedule/trouble.ts'

/** A setting of a server: what was found, and what is expected. */
export interface SettingFact {
  readonly isOk: boolean
  readonly found: string
  readonly expected: string
}

/** What a server of the store reports about itself. A fact is undefined if the server does not permit the command that reads it. */
export interface ServerFacts {
  /** The node of a cluster. A single server's node is ''. */
  readonly node: string
  readonly settings: ReadonlyMap<string, SettingFact>
  readonly memory: { readonly usedBytes: number; readonly limitBytes: number } | undefined
  /** What the server could not write to its disk when it last tried, such as `the append-only file`. */
  readonly failedWrites: readonly string[] | undefined
  readonly connections: { readonly open: number; readonly max: number } | undefined
  /** The median of some round trips from this process, in ms. */
  readonly latencyMs: number
  /** The commands that the server does not permit, such as `CONFIG GET`. */
  readonly refused: readonly string[]
}

/** A node of a cluster that does not respond. */
export interface UnreachableNode {
  /** Its host and port. */
  readonly node: string
  /** The queues of the API's catalogue that the node has. */
  readonly queues: readonly string[]
  /** Whether the node has what belongs to no queue, such as the list of workers. Without it, nothing can be examined. */
  readonly hasShared: boolean
}

/** What is known about the process that does the housekeeping. */
export interface LeadershipFacts {
  /** Whether a process leads the namespace. */
  readonly isLed: boolean
  /** How often the leadership passed to another process, and in which time, in ms. */
  readonly changes: number
  readonly overMs: number
}

export interface PoisonFacts {
  readonly tasks: number
  /** When the last of them became dead, in ms since 1970. */
  readonly newestAt: number
  readonly newestId: string
  /** The name of its definition. Undefined if the task is no longer there. */
  readonly newestTask: string | undefined
}

/** The tasks that the store has lost after a process had acknowledged them. */
export interface LostTasksFacts {
  readonly tasks: number
  /** One of those that were noticed last, and when, in ms since 1970. */
  readonly newestId: string
  readonly noticedAt: number
}

/** How many of the tasks that died lately have the same kind of error. See `errorKind`. */
export interface KindOfDeath {
  readonly fingerprint: string
  readonly code: string
  /** The masked message. */
  readonly message: string
  readonly count: number
}

export interface FailureFact {
  /** The name of the task's definition. */
  readonly task: string
  /** The code or the reason with which its last attempt ended. */
  readonly error: string | undefined
}

export interface QueueFacts {
  readonly queue: string
  readonly tasks: Readonly<Record<TaskStatus, number>>
  readonly settings: QueueSettings
  /** What each task of a definition needs. Definitions whose tasks need nothing are left out. */
  readonly needs: readonly { readonly task: string; readonly needs: readonly Need[] }[]
  /**
   * What the API's catalogue limits in the queue. The scripts that start tasks apply only what a worker has stored, which is in
   * `settings`.
   */
  readonly catalogueLimits: {
    readonly perConcurrencyKey: PerConcurrencyKey | undefined
    /** The names of the limiters with their kinds, such as `permits:db`. */
    readonly limiters: readonly string[]
    /** The services that have a circuit breaker. */
    readonly services: readonly string[]
  }
  /** The limits of the definition and of commands. Undefined if there is none. */
  readonly maxTasks: number | undefined
  readonly maxBytes: number | undefined
  readonly bytes: number
  readonly outbox: OutboxState
  /** Since when the waiting task that starts next has been ready, in ms since 1970. Undefined if no waiting task could start. */
  readonly nextReadyAt: number | undefined
  /** How many waiting tasks could not start, however many slots are free. */
  readonly blockedTasks: number
  /**
   * The blocked task that has been ready for the longest time, and what keeps it from starting. Undefined if there is
   * none, or if it is no longer waiting. Without `waitsFor`, what keeps it holds the whole queue.
   */
  readonly oldestBlocked:
    | ({ readonly id: string; readonly readyAt: number } & Partial<Pick<TaskRecord, 'concurrencyKey' | 'waitsFor'>>)
    | undefined
  /** Some of the active tasks, beginning with those that have been active for the longest time. */
  readonly active: readonly { readonly id: string; readonly startedAt: number | undefined }[]
  /** How many of the dead tasks no worker's catalogue had. */
  readonly unknownTasks: number
  /** The dead tasks whose process died too often. Undefined if there are none. */
  readonly poison: PoisonFacts | undefined
  /** How many tasks died and completed within the last `RECENT_ENDS_MS`. Tasks whose retention has ended are not counted. */
  readonly recentEnds: {
    readonly dead: number
    readonly completed: number
    readonly kinds: readonly KindOfDeath[]
  }
  /** Some of the tasks that wait for a retry, beginning with those that are due first. */
  readonly retrying: readonly FailureFact[]
  /** Undefined if there are none. */
  readonly unattached: UnattachedWorkers | undefined
  /** Those of the last day. Undefined if there are none. */
  readonly lost: LostTasksFacts | undefined
  /** How many retries the retry budgets of the queue's definitions hold. */
  readonly heldRetries: number
}

export interface ScheduleFacts {
  readonly name: string
  readonly queue: string
  readonly troubles: readonly Trouble[]
}

export interface DiagnosisFacts {
  /** In ms since 1970, on the store's clock. */
  readonly now: number
  readonly api: {
    readonly version: string
    readonly isDevelopment: boolean
    /** How far the clock of the API's machine is ahead of the store's, in ms. Undefined if it could not be measured. */
    readonly clockSkewMs: number | undefined
    /** The percentage of the memory at which the API stops accepting tasks. */
    readonly memoryWatermark: number
    /** The names in the API's catalogue. */
    readonly queues: readonly string[]
    readonly tasks: readonly string[]
    /** A digest of the definitions of each queue, by queue. */
    readonly catalogue: Readonly<Record<string, string>>
  }
  readonly servers: readonly ServerFacts[]
  /** Their queues are not among `queues`. */
  readonly unreachable: readonly UnreachableNode[]
  readonly leadership: LeadershipFacts
  /** Workers that have been silent for less than a minute are among them. */
  readonly workers: readonly RegisteredWorker[]
  readonly queues: readonly QueueFacts[]
  /** Undefined if they cannot be read, because a queue of theirs is on a node that does not respond. */
  readonly schedules: readonly ScheduleFacts[] | undefined
  /** How the stored schedules differ from those of the API's catalogue. */
  readonly scheduleChanges: readonly Pick<ScheduleChange, 'name' | 'queue' | 'action' | 'fields'>[] | undefined
}

/** What one check has found. The rest of a {@link Finding} is in the table of checks. */
export interface Found extends Omit<Finding, 'check' | 'severity' | 'reason' | 'advice'> {
  /** Defaults to `warning`. */
  readonly severity?: Finding['severity']
  /** Replaces the advice of the check. */
  readonly advice?: string
  /** Replaces the runbook page of the check. */
  readonly runbook?: string
}

/** Returns what is wrong, or undefined if the facts that it needs are missing. */
export type Examine = (facts: DiagnosisFacts) => Found | readonly Found[] | undefined
