// The fleet: what workers tell of themselves, what they are told, and what follows from both.
import type { CommandOutcome, DrainMode, PoolState } from '@bullpen/contract'
import type { AnswerOutcome, CommandSpec } from '@bullpen/contract/internal'
import type { SlotStatus } from '../pool/slot.ts'

/** How often a worker tells of itself; it is taken for silent after three of these. */
export const HEARTBEAT_INTERVAL_MS = 2_000
export const SILENT_AFTER_MS = 3 * HEARTBEAT_INTERVAL_MS
/** A silent worker is shown for so long, and then forgotten. */
export const FORGOTTEN_AFTER_MS = 60_000

export interface PoolStatus {
  readonly queue: string
  readonly state: PoolState
  readonly paused: boolean
  /** Workers that are not told to end. */
  readonly concurrency: number
  readonly busy: number
  /** Handlers that go on after their attempt has ended. */
  readonly stuckHandlers: number
  /** Undefined: it takes tasks. Otherwise why not. */
  readonly notReady: string | undefined
  readonly slots: readonly SlotStatus[]
}

/** What a worker tells of itself. Times are milliseconds since 1970 by the store's clock. */
export interface WorkerStatus {
  /** Distinct over hosts, and restarts that reuse a worker id. */
  readonly worker: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly startedAt: number
  readonly draining: boolean
  /** How far its machine's clock is ahead of the store's, in ms. */
  readonly skewMs: number
  readonly drainTimeoutMs: number
  readonly graceMs: number
  readonly pools: readonly PoolStatus[]
}

export interface RegisteredWorker extends WorkerStatus {
  /** Its last sign of life, in ms since 1970 by the store's clock. */
  readonly seenAt: number
}

export interface Command {
  readonly id: string
  readonly spec: CommandSpec
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

/** What holds for every worker that works a queue, also for one that starts later. */
export interface QueueSettings {
  readonly paused: boolean
  /** While it is set the queue's intake is closed. */
  readonly drain:
    | {
        readonly mode: DrainMode
        /** Of soft_timeout, instead of the worker's own. */
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

/** What a worker hears when it tells of itself. */
export interface HeartbeatReply {
  /** Those that it has not answered, oldest first. */
  readonly commands: readonly Command[]
  /** By queue, of its own queues. */
  readonly switches: ReadonlyMap<string, QueueSettings>
}

/**
 * Keeps what is known of the fleet. Every method rejects with BullpenError `redis_unavailable` within the store's command
 * timeout when it can't be reached.
 */
export interface Fleet {
  /** Registers the worker, or renews it. One round trip. */
  beat(status: WorkerStatus): Promise<HeartbeatReply>
  /** It is not there any more; what it has not answered is answered with `gone`. */
  leave(worker: string): Promise<void>
  /** The second answer to one command by one worker changes nothing. */
  answer(command: string, answer: CommandAnswer): Promise<void>
  /** `wake` is called when a command or a switch may concern this worker, and after each loss of the connection. */
  listen(worker: string, wake: () => void): () => void
  workers(): Promise<{ readonly now: number; readonly workers: readonly RegisteredWorker[] }>
  switches(queue: string): Promise<QueueSettings>
  /** Tasks of a queue that are waiting, active, or due: what a light drain of its fleet waits for. */
  remaining(queue: string): Promise<number>
  /**
   * Keeps the command, sets what holds for its queue, gives it to the workers that it concerns, and only then tells
   * them. The same id and order twice is one command.
   *
   * @throws BullpenError `worker_not_found`, `command_id_reused` when the id was used for another order.
   */
  send(command: Omit<Command, 'at'>): Promise<CommandRecord>
  command(id: string): Promise<CommandRecord | undefined>
  /** The command once every worker has answered, or as it stands when the signal aborts. */
  answered(id: string, signal: AbortSignal): Promise<CommandRecord | undefined>
  /** The newest first. `limit`: 1 to 200. */
  commands(limit: number): Promise<readonly CommandRecord[]>
  close(): Promise<void>
}

/** `now`: by the store's clock. */
export function isAlive({ seenAt }: RegisteredWorker, now: number): boolean {
  return now - seenAt <= SILENT_AFTER_MS
}

/**
 * Those that a command is for: the one that it names, or every live one with a pool on its queue. A silent one may come back:
 * what no switch of the queue will tell it then, it is told by the command.
 */
export function recipients(order: CommandSpec, workers: readonly RegisteredWorker[], now: number): readonly string[] {
  // What a queue's whole fleet may do is the queue's own: nobody needs to be told.
  if (order.action === 'limit') return []
  const { queue, worker } = order
  return workers
    .filter((each) => isAlive(each, now) || (order.action === 'resize' && worker === undefined))
    .filter((each) => worker === undefined || each.worker === worker)
    .filter((each) => worker !== undefined || each.pools.some((pool) => pool.queue === queue))
    .map((each) => each.worker)
}

/** What a command has come to. Nobody to tell: what it sets for its queue is set. */
export function outcomeOf(answers: readonly CommandAnswer[]): CommandOutcome {
  if (answers.some(({ outcome }) => outcome === 'pending')) return 'pending'
  const done = answers.filter(({ outcome }) => outcome === 'done').length
  if (done === answers.length) return 'done'
  return done > 0 ? 'partly' : 'refused'
}
