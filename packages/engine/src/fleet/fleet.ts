// The fleet: what processes tell of themselves, what they are told, and what follows from both.
import type { AnswerOutcome, CommandOutcome, DrainMode, Order, PoolState } from '@bullpen/contract'
import type { WorkerStatus } from '../pool/slot.ts'

/** How often a process tells of itself; it is taken for silent after three of these. */
export const BEAT_EVERY_MS = 2_000
export const SILENT_AFTER_MS = 3 * BEAT_EVERY_MS
/** A silent process is shown for so long, and then forgotten. */
export const FORGOTTEN_AFTER_MS = 60_000

export interface PoolStatus {
  readonly queue: string
  readonly state: PoolState
  readonly paused: boolean
  /** Workers that are not told to end. */
  readonly concurrency: number
  readonly busy: number
  /** Handlers that go on after their attempt has ended. */
  readonly leftovers: number
  /** Undefined: it takes tasks. Otherwise why not. */
  readonly notReady: string | undefined
  readonly workers: readonly WorkerStatus[]
}

/** What a process tells of itself. Times are milliseconds since 1970 by the store's clock. */
export interface ProcessStatus {
  /** Distinct over hosts, and restarts that reuse a process id. */
  readonly process: string
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

export interface RegisteredProcess extends ProcessStatus {
  /** Its last sign of life, in ms since 1970 by the store's clock. */
  readonly seenAt: number
}

export interface Command {
  readonly id: string
  readonly order: Order
  readonly by: string
  /** Milliseconds since 1970 by the store's clock. */
  readonly at: number
}

export interface CommandAnswer {
  readonly process: string
  readonly outcome: AnswerOutcome
  /** For people: why it was refused, or what was done. */
  readonly detail?: string | undefined
  /** Undefined while it is pending. */
  readonly at?: number | undefined
}

export interface CommandRecord extends Command {
  readonly answers: readonly CommandAnswer[]
}

/** What holds for every process that works a queue, also for one that starts later. */
export interface QueueSwitches {
  readonly paused: boolean
  /** While it is set the queue's intake is closed. */
  readonly drain:
    | {
        readonly mode: DrainMode
        /** Of soft_timeout, instead of the process's own. */
        readonly timeoutMs: number | undefined
        readonly since: number
        /** The id of the command. */
        readonly command: string
      }
    | undefined
  /** Over all processes. */
  readonly concurrency: number | undefined
  readonly rate: { readonly max: number; readonly perMs: number } | undefined
}

/** What a process hears when it tells of itself. */
export interface Told {
  /** Those that it has not answered, oldest first. */
  readonly commands: readonly Command[]
  /** By queue, of its own queues. */
  readonly switches: ReadonlyMap<string, QueueSwitches>
}

/**
 * Keeps what is known of the fleet. Every method rejects with BullpenError `redis_unavailable` within the store's command
 * timeout when it can't be reached.
 */
export interface Fleet {
  /** Registers the process, or renews it. One round trip. */
  beat(status: ProcessStatus): Promise<Told>
  /** It is not there any more; what it has not answered is answered with `gone`. */
  leave(process: string): Promise<void>
  /** The second answer to one command by one process changes nothing. */
  answer(command: string, answer: CommandAnswer): Promise<void>
  /** `wake` is called when a command or a switch may concern this process, and after each loss of the connection. */
  listen(process: string, wake: () => void): () => void
  processes(): Promise<{ readonly now: number; readonly processes: readonly RegisteredProcess[] }>
  switches(queue: string): Promise<QueueSwitches>
  /** Tasks of a queue that are waiting, active, or due: what a light drain of its fleet waits for. */
  remaining(queue: string): Promise<number>
  /**
   * Keeps the command, sets what holds for its queue, gives it to the processes that it concerns, and only then tells
   * them. The same id and order twice is one command.
   *
   * @throws BullpenError `process_not_found`, `command_id_reused` when the id was used for another order.
   */
  send(command: Omit<Command, 'at'>): Promise<CommandRecord>
  command(id: string): Promise<CommandRecord | undefined>
  /** The command once every process has answered, or as it stands when the signal aborts. */
  answered(id: string, signal: AbortSignal): Promise<CommandRecord | undefined>
  /** The newest first. `limit`: 1 to 200. */
  commands(limit: number): Promise<readonly CommandRecord[]>
  close(): Promise<void>
}

/** `now`: by the store's clock. */
export function isAlive({ seenAt }: RegisteredProcess, now: number): boolean {
  return now - seenAt <= SILENT_AFTER_MS
}

/**
 * Those that a command is for: the one that it names, or every live one with a pool on its queue. A silent one may come back:
 * what no switch of the queue will tell it then, it is told by the command.
 */
export function recipients(order: Order, processes: readonly RegisteredProcess[], now: number): readonly string[] {
  // What a queue's whole fleet may do is the queue's own: nobody needs to be told.
  if (order.action === 'limit') return []
  const { queue, process } = order
  return processes
    .filter((each) => isAlive(each, now) || (order.action === 'resize' && process === undefined))
    .filter((each) => process === undefined || each.process === process)
    .filter((each) => process !== undefined || each.pools.some((pool) => pool.queue === queue))
    .map((each) => each.process)
}

/** What a command has come to. Nobody to tell: what it sets for its queue is set. */
export function outcomeOf(answers: readonly CommandAnswer[]): CommandOutcome {
  if (answers.some(({ outcome }) => outcome === 'pending')) return 'pending'
  const done = answers.filter(({ outcome }) => outcome === 'done').length
  if (done === answers.length) return 'done'
  return done > 0 ? 'partly' : 'refused'
}
