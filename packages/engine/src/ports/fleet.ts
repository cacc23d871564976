// Defines the port that stores the fleet's state: the workers, the commands for them, and each queue's settings.
import type { ApiKeyLimits, DrainMode, LimiterKind, LimitSource, LogLevel, StartRate } from '@bullpen/contract'
import type { CommandSpec, ResponseOutcome } from '@bullpen/contract/internal'
import type { BreakerStatus } from './broker/breakers.ts'
import type { LimitInForce } from './broker/concurrency-keys.ts'
import type { PoolStatus } from './pool-status.ts'

/** What a worker reports with each heartbeat. Times are in milliseconds since 1970 on the store's clock. */
export interface WorkerStatus {
  /** A name that is unique across all hosts, and across restarts that reuse a process id. */
  readonly worker: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly startedAt: number
  readonly draining: boolean
  /** How far the clock of the worker's machine is ahead of the store's clock, in ms. */
  readonly skewMs: number
  readonly drainTimeoutMs: number
  readonly graceMs: number
  /** A digest of the definitions of each of the worker's queues, by queue. Absent if the worker's version does not report it. */
  readonly catalogue?: Readonly<Record<string, string>>
  /** What the worker can do that workers of older versions cannot. Absent if the worker's version does not report it. */
  readonly features?: readonly string[]
  /** How the event loop was blocked within the last minute. Absent if it was not, or if the worker does not watch it. */
  readonly stalls?: RecentStalls | undefined
  readonly pools: readonly PoolStatus[]
}

export interface RecentStalls {
  readonly count: number
  /** How long the stalls have lasted in all, in ms. */
  readonly stalledMs: number
  /** The task that caused the last one. Undefined if no task did. */
  readonly lastTask: string | undefined
}

export interface RegisteredWorker extends WorkerStatus {
  /** The time of the worker's last heartbeat, in ms since 1970 on the store's clock. */
  readonly seenAt: number
}

export interface Command {
  readonly id: string
  readonly spec: CommandSpec
  /** Who sent the command. */
  readonly by: string
  /** When the command was stored, in ms since 1970 on the store's clock. */
  readonly at: number
}

export interface CommandResponse {
  readonly worker: string
  readonly outcome: ResponseOutcome
  /** A human-readable explanation of why the command was refused or what was done. */
  readonly detail?: string | undefined
  /** When the worker responded. Undefined while the response is pending. */
  readonly at?: number | undefined
}

export interface CommandRecord extends Command {
  readonly responses: readonly CommandResponse[]
}

/** Settings that apply to every worker of a queue, including workers that start later. */
export interface QueueSettings {
  readonly paused: boolean
  /** Whether the queue's workers fetch no tasks because its outbox is full. */
  readonly outboxFull?: boolean
  /** While this is set, the queue does not accept new tasks. */
  readonly drain:
    | {
        readonly mode: DrainMode
        /** For `soft_timeout`, the timeout that replaces the worker's own. */
        readonly timeoutMs: number | undefined
        readonly since: number
        /** The id of the command. */
        readonly command: string
      }
    | undefined
  /** How many tasks may run at once across all workers. */
  readonly concurrency: number | undefined
  readonly rate: { readonly max: number; readonly perMs: number } | undefined
  /** The limits of concurrency keys that apply, whether a command or the queue's definition has set them. Undefined if there are none. */
  readonly perConcurrencyKey?:
    | {
        readonly concurrency?: number | undefined
        readonly rate?: StartRate | undefined
        /** How many limits of single keys there are. */
        readonly ofSingleKeys: number
      }
    | undefined
  /** The limiters that apply, whether a command or a definition has set their capacities, in alphabetical order. */
  readonly limiters?: readonly LimiterStatus[] | undefined
  /** The circuit breakers, by the name of their service. Undefined if there are none. */
  readonly breakers?: readonly BreakerStatus[] | undefined
  /** How many tasks may be waiting, scheduled or retrying. Replaces the limit in the queue's definition. */
  readonly maxTasks: number | undefined
  /** How many bytes the unfinished tasks may take. Replaces the limit in the queue's definition. */
  readonly maxBytes: number | undefined
  /** How long the task that starts next may have been waiting. Replaces the limit in the queue's definition. */
  readonly maxAgeMs: number | undefined
}

export interface LimiterStatus {
  readonly kind: LimiterKind
  /** The name of the permits or of the definition. */
  readonly name: string
  readonly capacity: number
  readonly inUse: number
}

/** The limits of every concurrency key, or of one. A limit that is undefined does not apply. */
interface KeyLimits {
  readonly concurrency: LimitInForce<number> | undefined
  readonly rate: LimitInForce<StartRate> | undefined
}

export interface LimitSettings {
  /** The queue's settings, whose own limits only commands set. */
  readonly settings: QueueSettings
  /** The limits that commands have set for API keys in this queue, by the key's name. */
  readonly perApiKey: ReadonlyMap<string, ApiKeyLimits>
  /** The limiters of `settings` with what has set the capacity of each. */
  readonly limiters: readonly (LimiterStatus & { readonly source: LimitSource })[] | undefined
  /** Those of every concurrency key. */
  readonly perConcurrencyKey: KeyLimits
  /** Concurrency keys with limits of their own, sorted by name. If there are more than 100, only some of them. */
  readonly singleKeys: readonly (KeyLimits & { readonly key: string })[]
}

/** The log level that a command has set for all processes of the fleet, including those that start while it is in force. */
export interface LogLevelOverride {
  /** The id of the command. */
  readonly command: string
  readonly level: LogLevel
  readonly by: string
  /** When it ends, in ms since 1970 on the store's clock. */
  readonly until: number
}

/** What a worker receives in reply to a heartbeat. */
export interface HeartbeatReply {
  /** The commands to which the worker has not responded, oldest first. */
  readonly commands: readonly Command[]
  /** The settings of the worker's own queues, by queue. */
  readonly queueSettings: ReadonlyMap<string, QueueSettings>
  readonly logLevel: LogLevelOverride | undefined
}

/** If the store is unreachable, every method rejects with BullpenError `redis_unavailable` within its command timeout. */
export interface Fleet {
  /** Registers the worker, or renews its registration. Takes one round trip. */
  heartbeat(status: WorkerStatus): Promise<HeartbeatReply>
  /** Removes the worker. Each command to which the worker has not responded records the outcome `gone` for this worker. */
  leave(worker: string): Promise<void>
  /** Stores a worker's response to a command. A worker's second response to the same command has no effect. */
  respond(command: string, response: CommandResponse): Promise<void>
  /** Calls `wake` when a command or a setting may affect this worker, and after each loss of the connection. */
  listen(worker: string, wake: () => void): () => void
  workers(): Promise<{ readonly now: number; readonly workers: readonly RegisteredWorker[] }>
  queueSettings(queue: string): Promise<QueueSettings>
  /**
   * Returns the limits of a queue that commands have set, including those of the given API keys, and the limits of its concurrency keys
   * that apply. Takes two round trips. If more than about 1,000 limits of single concurrency keys are stored, only some of them are read.
   */
  limitSettings(queue: string, apiKeyNames: readonly string[]): Promise<LimitSettings>
  /** Returns the log level of all processes, if a command has set one. Takes one round trip. */
  logLevel(): Promise<LogLevelOverride | undefined>
  /**
   * Counts the tasks of a queue that are waiting, active or due, and the quarantined tasks that wait for a place. A light drain of the
   * fleet waits for these tasks.
   */
  remaining(queue: string): Promise<number>
  /**
   * Stores the command, applies it to its queue's settings, assigns it to the workers that must execute it, and then wakes them.
   * Sending the same id and spec again has no further effect.
   *
   * @throws BullpenError `worker_not_found`, or `command_id_reused` if the id was used with a different spec.
   */
  send(command: Omit<Command, 'at'>): Promise<CommandRecord>
  command(id: string): Promise<CommandRecord | undefined>
  /** Resolves with the command once every worker has responded, or with its current state when the signal aborts. */
  awaitResponses(id: string, signal: AbortSignal): Promise<CommandRecord | undefined>
  /** Lists the commands, newest first. `limit` is a number from 1 to 200. */
  commands(limit: number): Promise<readonly CommandRecord[]>
  close(): Promise<void>
}
