// BullMQ's backend for Redis, with Bullpen's scripts in place of those of BullMQ that add, move or delete jobs.
//
// BullMQ's Queue, Worker and FlowProducer reach Redis only through a backend, which a factory makes. Ours makes BullMQ's own, and gives
// it other methods before anything else has it: those whose scripts are Bullpen's (./backend-adds.ts, ./backend-changes.ts,
// ./backend-events.ts, ./backend-locks.ts, ./moves.ts), `execCommand`, which sends the few scripts of BullMQ's that still write,
// `forQueue` and `waitForJob`.
import type { Candidates, Retention } from '@bullpen/engine/internal'
import { type BackendFactory, createRedisBackend, type RedisClient, type RedisQueueBackend } from 'bullmq'
import { createReplyClock } from '../clock/reply-clock.ts'
import { type Commander, defineOnClient, runScriptOnClient, type ScriptRunner } from '../scripts/script.ts'
import { type AttemptEnd, addEnd, type PendingEnds } from './attempt-end.ts'
import { addMethods, PIPELINED, schedulerMethods } from './backend-adds.ts'
import { changeMethods } from './backend-changes.ts'
import { eventMethods } from './backend-events.ts'
import { lockMethods } from './backend-locks.ts'
import { FLAGGED } from './bullmq-scripts.ts'
import { moveMethods } from './moves.ts'

export interface BackendOptions {
  /**
   * Returns the time in ms since 1970, by the clock that all of the queue's processes share. By default, the scripts read Redis's clock,
   * and their replies tell the time.
   */
  readonly now?: (() => number) | undefined
  /** How long ended tasks are kept. By default, this backend does not remove them. */
  readonly retention?: Retention | undefined
  /**
   * The connection that sends the script which fetches and ends tasks, at less cost than BullMQ's own client, which must use the same
   * connection.
   */
  readonly commands?: Commander | undefined
  /** The tasks that the backend's Worker may fetch. By default, all tasks of the queue. */
  readonly candidates?: Candidates | undefined
  /** Called when a Worker that was waiting is about to fetch a task, before it sends anything. */
  readonly onWoken?: (() => void) | undefined
  /** Called when the wait for a marker has failed. BullMQ reports the error, and waits again after a short pause. */
  readonly onWaitFailed?: (() => void) | undefined
  /** Stores the limits of a catalogue in the queue. */
  readonly limitsStorer?: LimitsStorer | undefined
}

/**
 * Called before each fetch that does not follow the end of a task, with the prefix of the queue's keys. If it returns a promise, the fetch
 * is sent once the promise has resolved, or fails if it rejects.
 */
export type LimitsStorer = (run: ScriptRunner, base: string) => Promise<void> | undefined

export interface BullpenBackend extends RedisQueueBackend {
  /** Whether the backend stores the limits of a catalogue. */
  readonly storesLimits: boolean
  /** Returns the time in ms since 1970, by the clock that all of the queue's processes share. */
  now(): number
  /** Carries out this end with the next move of the task, and settles it once Redis has replied. */
  expectEnd(end: AttemptEnd): void
}

/**
 * How long an idle Worker waits for a marker before it looks for a task without one, in seconds. BullMQ waits for at most 10 s.
 * If a marker is lost, the leader adds another one (../leader/housekeeping.ts).
 */
export const IDLE_WAIT_SECONDS = 10
/**
 * The longest that one command waits for a marker, in seconds, so that a connection that has become silent is noticed within 5 s
 * (../redis/silence.ts). An idle Worker sends three such commands before it looks for a task.
 */
export const BLOCK_SECONDS = 3.4
/**
 * If a command takes longer than its wait by this many seconds, it was interrupted, and its marker may be lost. The Worker then looks for a
 * task.
 */
const LATE_SECONDS = 0.5

const NO_LIMITS: Retention = Object.freeze({})

/** Returns whether this backend runs Bullpen's scripts. */
export function isBullpenBackend(backend: object): backend is BullpenBackend {
  return 'expectEnd' in backend
}

/**
 * Returns whether this is BullMQ's backend for Redis. `instanceof` is not enough: a program can have two copies of the class,
 * because BullMQ is published both as ES modules and as CommonJS.
 */
export function isRedisBackend(backend: object): backend is RedisQueueBackend {
  return 'execCommand' in backend && 'waitForJob' in backend && 'connection' in backend
}

/** Returns the factory of backends for Bullpen's own Queues and Workers. */
export function backendFactory(options: BackendOptions): BackendFactory<BullpenBackend> {
  return (name, queueOptions, connections) => withScripts(createRedisBackend(name, queueOptions, connections), options)
}

/** Makes a new backend of BullMQ's, which nothing else has yet, one that runs Bullpen's scripts. */
export function withScripts(made: RedisQueueBackend, options: BackendOptions): BullpenBackend {
  const { now: given, retention = NO_LIMITS, commands, candidates, onWoken, onWaitFailed, limitsStorer } = options
  const run: ScriptRunner = async (script, keys, args, more) =>
    runScriptOnClient(await made.connection.client, script, keys, args, more)
  // If the connection fails, BullMQ reports the error.
  made.connection.client.then(defineScripts, () => {})
  const pending: PendingEnds = new Map()
  const clock = createReplyClock()
  const now = given ?? clock.now
  // BullMQ computes how long to wait for the next delayed job with the machine's clock, but the job is due by the shared one.
  const toMachine = (time: number): number => (time > 0 ? time + (Date.now() - now()) : time)
  const exec = made.execCommand.bind(made)
  const siblingFor = made.forQueue.bind(made)
  const waitForJob = made.waitForJob.bind(made)

  const waitInBlocks = async (seconds: number) => {
    const blocks = Math.ceil(seconds / BLOCK_SECONDS)
    for (let left = blocks - 1; ; left--) {
      const sentAt = performance.now()
      const marker = await waitForJob(seconds / blocks)
      const isLate = performance.now() - sentAt > (seconds / blocks + LATE_SECONDS) * 1_000
      if (marker !== null || left <= 0 || isLate) return marker
    }
  }

  return Object.assign(made, {
    ...addMethods(made, run),
    ...schedulerMethods(made, run),
    ...changeMethods(made, run),
    ...lockMethods(made, run),
    ...eventMethods(made, run),
    ...moveMethods(made, {
      ...{
        now,
        learn: given === undefined ? clock.learn : undefined,
        toMachine,
        retention,
        commands,
        candidates,
        pending,
      },
      prepare: async () => limitsStorer?.(run, made.toKey('')),
    }),
    now,
    storesLimits: limitsStorer !== undefined,

    expectEnd(end: AttemptEnd) {
      addEnd(pending, end)
    },

    execCommand(client: Parameters<typeof exec>[0], name: string, args: unknown[]) {
      const flagged = FLAGGED.get(name)
      return flagged === undefined ? exec(client, name, args) : client.runCommand(flagged.name, args)
    },

    /** The jobs that a FlowProducer returns change through such a backend. Its class is that of this one. */
    forQueue: (...queue: Parameters<typeof siblingFor>) =>
      withScripts(siblingFor(...queue) as RedisQueueBackend, { now: given, retention }),

    async waitForJob(seconds: number) {
      if (candidates !== undefined) {
        // The queue's marker stays for the Workers that run all tasks. A marker that is never due keeps a stopped Worker from fetching.
        const goesOn = await candidates.noneWaits()
        onWoken?.()
        return goesOn ? null : { member: '', score: Number.POSITIVE_INFINITY }
      }
      const marker = await waitInBlocks(seconds).catch((error: unknown) => {
        onWaitFailed?.()
        throw error
      })
      // A shorter wait ends when a delayed task is due.
      if (marker !== null || seconds < IDLE_WAIT_SECONDS) onWoken?.()
      return marker && { ...marker, score: toMachine(marker.score) }
    },
  })
}

/** The client's transactions have the same commands, so the scripts are defined before any transaction begins. */
function defineScripts(client: RedisClient): void {
  for (const script of [...FLAGGED.values(), ...PIPELINED]) defineOnClient(client, script)
}
