// BullMQ's backend for Redis, composed with Bullpen's scripts and with Redis's clock.
//
// Bullpen's Queues and Workers get the backend through a public option of BullMQ, `backendFactory`. A team's own Worker already
// has a backend, which `attach` (../../attach.ts) composes. Both use `composeBackend`, which replaces the methods whose scripts are
// Bullpen's own (../../store/moves.ts, ../../store/backend.ts), and two others.
import type { Candidates, Retention } from '@bullpen/engine/internal'
import { type BackendFactory, createRedisBackend, type RedisClient, type RedisQueueBackend } from 'bullmq'
import type { Commander } from '../../scripts/script.ts'
import type { AttemptEnd, PendingEnds } from '../../store/attempt-end.ts'
import { addMethods, lockMethods, PIPELINED, schedulerMethods, taskMethods } from '../../store/backend.ts'
import { replaceMoves } from '../../store/moves.ts'
import { FLAGGED } from './bullmq-scripts.ts'

export interface ComposeOptions {
  /** Returns the time in ms since 1970, by the clock that all of the queue's processes share. */
  readonly now: () => number
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
}

/**
 * How long an idle Worker waits for a marker before it looks for a task without one, in seconds. BullMQ waits for at most 10 s.
 * If a marker is lost, the leader adds another one (../../leader/housekeeping.ts).
 */
export const IDLE_WAIT_SECONDS = 10
/**
 * The longest that one command waits for a marker, in seconds, so that a connection that has become silent is noticed within 5 s
 * (../../redis/silence.ts). An idle Worker sends three such commands before it looks for a task.
 */
export const BLOCK_SECONDS = 3.4
/**
 * If a command takes longer than its wait by this many seconds, it was interrupted, and its marker may be lost. The Worker then looks for a
 * task.
 */
const LATE_SECONDS = 0.5

interface Composed {
  readonly pending: PendingEnds
  /** See {@link prepareFetches}. */
  prepare: Prepare | undefined
}

/** Prepares a fetch. If it returns a promise, the fetch is sent once the promise has resolved, or fails if it rejects. */
export type Prepare = (client: RedisClient) => Promise<void> | undefined

const composed = new WeakMap<object, Composed>()

/** Lets a composed backend call this function before each fetch that does not follow the end of a task. */
export function prepareFetches(backend: object, prepare: Prepare): void {
  const state = composed.get(backend)
  if (state !== undefined) state.prepare = prepare
}

/** Returns whether {@link prepareFetches} was called for this backend. */
export function preparesFetches(backend: object): boolean {
  return composed.get(backend)?.prepare !== undefined
}

/** Returns whether this backend runs Bullpen's scripts. */
export function isComposed(backend: object): boolean {
  return composed.has(backend)
}

/**
 * Returns whether this is BullMQ's backend for Redis. `instanceof` is not enough: a program can have two copies of the class,
 * because BullMQ is published both as ES modules and as CommonJS.
 */
export function isRedisBackend(backend: object | undefined): backend is RedisQueueBackend {
  return backend !== undefined && 'execCommand' in backend && 'waitForJob' in backend && 'connection' in backend
}

/** Returns the backend factory for Bullpen's own Queues and Workers. */
export function backendFactory(options: ComposeOptions): BackendFactory<RedisQueueBackend> {
  return (name, queueOptions, connections) =>
    composeBackend(createRedisBackend(name, queueOptions, connections), options)
}

/** Lets a backend run Bullpen's scripts. A backend that already does is returned unchanged. */
export function composeBackend(
  backend: RedisQueueBackend,
  { now, retention = NO_LIMITS, commands, candidates, onWoken }: ComposeOptions,
): RedisQueueBackend {
  if (composed.has(backend)) return backend
  const state: Composed = { pending: new Map(), prepare: undefined }
  composed.set(backend, state)
  Object.assign(
    backend,
    addMethods(backend),
    schedulerMethods(backend),
    taskMethods(backend),
    lockMethods(backend, now),
  )
  const forQueue = backend.forQueue.bind(backend)
  // The jobs that a FlowProducer returns change through such a backend. Its class is that of this one.
  backend.forQueue = (...queue) => composeBackend(forQueue(...queue) as RedisQueueBackend, { now, retention })
  // If the connection fails, BullMQ reports the error.
  backend.connection.client.then(defineScripts, () => {})
  // BullMQ computes how long to wait for the next delayed job with the machine's clock, but the job is due by Redis's.
  const toMachine = (time: number): number => (time > 0 ? time + (Date.now() - now()) : time)
  const exec = backend.execCommand.bind(backend)
  const waitForJob = backend.waitForJob.bind(backend)

  replaceMoves(backend, {
    ...{ now, toMachine, retention, commands, candidates, pending: state.pending },
    async prepare() {
      if (state.prepare !== undefined) await state.prepare(await backend.client)
    },
  })

  backend.execCommand = (client, name, args: unknown[]) => {
    const flagged = FLAGGED.get(name)
    return flagged === undefined ? exec(client, name, args) : client.runCommand(flagged.name, args)
  }
  const waitInBlocks = async (seconds: number) => {
    const blocks = Math.ceil(seconds / BLOCK_SECONDS)
    for (let left = blocks - 1; ; left--) {
      const sentAt = performance.now()
      const marker = await waitForJob(seconds / blocks)
      const isLate = performance.now() - sentAt > (seconds / blocks + LATE_SECONDS) * 1_000
      if (marker !== null || left <= 0 || isLate) return marker
    }
  }
  backend.waitForJob = async (seconds) => {
    if (candidates !== undefined) {
      // The queue's marker stays for the Workers that run all tasks. A marker that is never due keeps a stopped Worker from fetching.
      const goesOn = await candidates.noneWaits()
      onWoken?.()
      return goesOn ? null : { member: '', score: Number.POSITIVE_INFINITY }
    }
    const marker = await waitInBlocks(seconds)
    // A shorter wait ends when a delayed task is due.
    if (marker !== null || seconds < IDLE_WAIT_SECONDS) onWoken?.()
    return marker && { ...marker, score: toMachine(marker.score) }
  }
  return backend
}

const NO_LIMITS: Retention = Object.freeze({})

/**
 * Carries out this end with the next move of the task, and settles it once Redis has replied. Returns false if the backend is not composed,
 * in which case the reply can't be seen.
 */
export function expectEnd(backend: object, end: AttemptEnd): boolean {
  const state = composed.get(backend)
  state?.pending.set(end.id, end)
  return state !== undefined
}

const clientsWithScripts = new WeakSet<object>()

/**
 * Defines the scripts as commands on a client. The client's transactions have the same commands, so the scripts are defined
 * before any transaction begins.
 */
function defineScripts(client: RedisClient): void {
  if (clientsWithScripts.has(client)) return
  clientsWithScripts.add(client)
  const scripts = [...FLAGGED.values(), ...PIPELINED]
  for (const { name, numberOfKeys, lua } of scripts) client.defineCommand(name, { numberOfKeys, lua })
}
