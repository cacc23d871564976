// Runs the thread that renews locks. A process with consumers has one renewal thread per Redis address, which all of the
// consumers share. If the thread dies, the main thread renews the locks until a new thread is ready.
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Log } from '@bullpen/contract'
import type { RedisAddress } from '@bullpen/contract/internal'
import { createRestartBackoff } from '@bullpen/engine/internal'
import { keepWrappersGeneric } from '@bullpen/engine/node'
import { addressIn } from '../connection.ts'
import { renewalConnection } from '../redis/renewal-connection.ts'
import type { Commander } from '../scripts/script.ts'
import type { LockGroup, LockMessage } from './lock-messages.ts'
import { type Renewal, startRenewal } from './renewal.ts'
import type { SharedTable } from './shared-lock-table.ts'

const SOURCE = new URL('./thread-entry.ts', import.meta.url)
/** The entry is TypeScript in the repository and compiled JavaScript in the published package. */
const ENTRY = new URL(SOURCE.href.replace(/\.ts$/, extname(import.meta.url)))

export interface Membership {
  /**
   * Resolves once the locks are being renewed, by either the renewal thread or the main thread, or once the renewal thread has
   * been stopped.
   */
  readonly ready: Promise<void>
  addTable(table: SharedTable): void
  leave(): void
}

const threads = new Map<string, RenewalThread>()

/**
 * Adds a group of locks to this process's renewal thread, starting the thread with the first group. If the thread can't be
 * started, logs a warning and renews the locks in the main thread.
 *
 * `onEnded` is called each time that the thread has ended although there are groups, or could not be started. A function that several
 * groups share is called once. It must not throw.
 */
export function joinRenewalThread(redisUrl: string, group: LockGroup, log: Log, onEnded: () => void): Membership {
  let thread = threads.get(redisUrl)
  if (thread === undefined) {
    thread = new RenewalThread(addressIn(redisUrl), log, () => threads.delete(redisUrl))
    threads.set(redisUrl, thread)
  }
  return thread.join(group, onEnded)
}

class RenewalThread {
  readonly #address: RedisAddress
  readonly #log: Log
  readonly #onEmpty: () => void
  readonly #groups = new Map<number, LockGroup>()
  /** The callback of each group, by its number. */
  readonly #onEnded = new Map<number, () => void>()
  /** The renewals that run in the main thread while there is no renewal thread. */
  readonly #fallback = new Map<number, Renewal>()
  readonly #ready = Promise.withResolvers<void>()
  readonly #backoff = createRestartBackoff()
  #fallbackRedis: Commander | undefined
  #worker: Worker | undefined
  #restart: NodeJS.Timeout | undefined

  constructor(address: RedisAddress, log: Log, onEmpty: () => void) {
    this.#address = address
    this.#log = log
    this.#onEmpty = onEmpty
  }

  join(group: LockGroup, onEnded: () => void): Membership {
    const { number } = group
    this.#onEnded.set(number, onEnded)
    const isFirst = this.#groups.size === 0
    this.#groups.set(number, group)
    if (isFirst) {
      this.#start()
    } else {
      this.#send({ kind: 'renew', group })
      if (this.#fallbackRedis !== undefined) this.#renewHere(group)
    }
    return {
      ready: this.#ready.promise,
      addTable: (table) => {
        this.#groups.set(number, { ...group, tables: [...(this.#groups.get(number)?.tables ?? []), table] })
        this.#send({ kind: 'add_table', number, table })
        this.#fallback.get(number)?.addTable(table)
      },
      leave: () => {
        if (!this.#groups.delete(number)) return
        this.#onEnded.delete(number)
        this.#send({ kind: 'release', number })
        this.#fallback.get(number)?.end()
        this.#fallback.delete(number)
        if (this.#groups.size === 0) this.#end()
      },
    }
  }

  #send(message: LockMessage): void {
    this.#worker?.postMessage(message)
  }

  #start(): void {
    keepWrappersGeneric()
    const startedAt = performance.now()
    const onExit = (err: unknown): void => {
      this.#worker = undefined
      this.#fallBack(err, performance.now() - startedAt)
    }
    try {
      // `execArgv` is empty so that the thread runs without the process's own preloads and loaders.
      const options = { workerData: { address: this.#address }, execArgv: [], name: 'bullpen locks' }
      const worker = new Worker(ENTRY, options)
      this.#worker = worker
      worker.unref()
      let failure: unknown
      worker.on('error', (error) => {
        failure = error
      })
      // The thread sends a single message, once it is connected to Redis.
      worker.on('message', () => {
        this.#ready.resolve()
        this.#endFallback()
      })
      worker.on('exit', (code) => {
        if (this.#worker === worker) onExit(failure ?? new Error(`the thread exited with code ${code}`))
      })
      for (const group of this.#groups.values()) this.#send({ kind: 'renew', group })
    } catch (error) {
      onExit(error)
    }
  }

  #fallBack(err: unknown, ranForMs: number): void {
    const delayMs = this.#backoff.next(ranForMs)
    this.#log.warn(
      { err, delayMs },
      'lock renewal thread ended; the main thread renews the locks until the thread is restarted',
    )
    for (const onEnded of new Set(this.#onEnded.values())) onEnded()
    this.#fallbackRedis ??= renewalConnection(this.#address)
    for (const group of this.#groups.values()) this.#renewHere(group)
    this.#ready.resolve()
    this.#restart = setTimeout(() => this.#start(), delayMs).unref()
  }

  #renewHere(group: LockGroup): void {
    if (this.#fallbackRedis === undefined || this.#fallback.has(group.number)) return
    this.#fallback.set(group.number, startRenewal(this.#fallbackRedis, group))
  }

  #endFallback(): void {
    for (const renewal of this.#fallback.values()) renewal.end()
    this.#fallback.clear()
    this.#fallbackRedis?.disconnect()
    this.#fallbackRedis = undefined
  }

  #end(): void {
    this.#onEmpty()
    this.#ready.resolve()
    clearTimeout(this.#restart)
    this.#endFallback()
    this.#send({ kind: 'end' })
    this.#worker = undefined
  }
}
