// The port that stores what is known of the fleet: workers, the commands for them, and the settings of each queue.
import type { DrainMode } from '@bullpen/contract'
import type { AnswerOutcome, CommandSpec } from '@bullpen/contract/internal'
import type { PoolStatus } from './pool-status.ts'

/** What a worker reports with each heartbeat. Times are milliseconds since 1970 by the store's clock. */
export interface WorkerStatus {
  /** Unique over all hosts, and over restarts that reuse a process id. */
  readonly worker: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly startedAt: number
  readonly draining: boolean
  /** How far the clock of its machine is ahead of the store's, in ms. */
  readonly skewMs: number
  readonly drainTimeoutMs: number
  readonly graceMs: number
  readonly pools: readonly PoolStatus[]
}

export interface RegisteredWorker extends WorkerStatus {
  /** Its last heartbeat, in ms since 1970 by the store's clock. */
  readonly seenAt: number
}

export interface Command {
  readonly id: string
  readonly spec: CommandSpec
  /** Who sent it. */
  readonly by: string
  /** Milliseconds since 1970 by the store's clock. */
  readonly at: number
}

export interface CommandAnswer {
  readonly worker: string
  readonly outcome: AnswerOutcome
  /** For people: why it was refused, or what was done. */
  readonly detail?: string | undefined
  /** Undefined while it is pending. */
  readonly at?: number | undefined
}

export interface CommandRecord extends Command {
  readonly answers: readonly CommandAnswer[]
}

/** What holds for every worker of a queue, including those that start later. */
export interface QueueSettings {
  readonly paused: boolean
  /** While it is set, the queue accepts no new tasks. */
  readonly drain:
    | {
        readonly mode: DrainMode
        /** For `soft_timeout`, in place of the worker's own. */
        readonly timeoutMs: number | undefined
        readonly since: number
        /** The id of the command. */
        readonly command: string
      }
    | undefined
  /** Over all workers. */
  readonly concurrency: number | undefined
  readonly rate: { readonly max: number; readonly perMs: number } | undefined
}

/** What a worker receives in reply to a heartbeat. */
export interface HeartbeatReply {
  /** Those that it has not answered, oldest first. */
  readonly commands: readonly Command[]
  /** By queue, for the worker's own queues. */
  readonly switches: ReadonlyMap<string, QueueSettings>
}

/** Every method rejects with BullpenError `redis_unavailable` within the store's command timeout when it cannot be reached. */
export interface Fleet {
  /** Registers the worker, or renews its registration. One round trip. */
  beat(status: WorkerStatus): Promise<HeartbeatReply>
  /** Removes the worker. Commands that it has not answered are answered with `gone`. */
  leave(worker: string): Promise<void>
  /** Idempotent: a second answer to one command by one worker changes nothing. */
  answer(command: string, answer: CommandAnswer): Promise<void>
  /** Calls `wake` when a command or a setting may concern this worker, and after each loss of the connection. */
  listen(worker: string, wake: () => void): () => void
  workers(): Promise<{ readonly now: number; readonly workers: readonly RegisteredWorker[] }>
  switches(queue: string): Promise<QueueSettings>
  /** Tasks of a queue that are waiting, active or due: what a light drain of the fleet waits for. */
  remaining(queue: string): Promise<number>
  /**
   * Stores the command, applies it to the settings of its queue, addresses it to the workers that it concerns, and then wakes
   * them. Idempotent by id and spec.
   *
   * @throws BullpenError `worker_not_found`, `command_id_reused` when the id was used with another spec.
   */
  send(command: Omit<Command, 'at'>): Promise<CommandRecord>
  command(id: string): Promise<CommandRecord | undefined>
  /** The command once every worker has answered, or in its present state when the signal aborts. */
  answered(id: string, signal: AbortSignal): Promise<CommandRecord | undefined>
  /** The newest first. `limit`: 1 to 200. */
  commands(limit: number): Promise<readonly CommandRecord[]>
  close(): Promise<void>
}
