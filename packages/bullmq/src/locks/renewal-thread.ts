// The thread that renews locks: one for all feeds of a process that use the same Redis, there while any of them is.
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Log } from '@bullpen/contract'
import { keepWrappersGeneric } from '@bullpen/engine/node'
import type { Redis } from 'ioredis'
import type { Charge, Order } from './lock-messages.ts'
import { type Renewal, startRenewal } from './renewal.ts'
import { renewalConnection } from './renewal-connection.ts'
import type { SharedTable } from './shared-lock-table.ts'

const SOURCE = new URL('./thread-entry.ts', import.meta.url)
/** As source in the repository, compiled beside this file in what is published. */
const ENTRY = new URL(SOURCE.href.replace(/\.ts$/, extname(import.meta.url)))
/** Between two starts of a thread that dies: doubled from the first to the last; anew once it has run for that long. */
const RESTART = { firstMs: 500, lastMs: 30_000 }

export interface Tended {
  /** Resolves when locks are renewed, by the thread or without it, or never will be. */
  readonly ready: Promise<void>
  add(table: SharedTable): void
  leave(): void
}

const threads = new Map<string, RenewingThread>()

/** Where there can be no thread, the log says so and this one renews, as well as its event loop lets it. */
export function tend(redisUrl: string, charge: Charge, log: Log): Tended {
  let thread = threads.get(redisUrl)
  if (thread === undefined) {
    thread = new RenewingThread(redisUrl, log, () => threads.delete(redisUrl))
    threads.set(redisUrl, thread)
  }
  return thread.tend(charge)
}

class RenewingThread {
  readonly #redisUrl: string
  readonly #log: Log
  readonly #gone: () => void
  readonly #charges = new Map<number, Charge>()
  /** While the thread is not there: renewal in this one. */
  readonly #here = new Map<number, Renewal>()
  #redis: Redis | undefined
  #worker: Worker | undefined
  #failures = 0
  readonly #ready = Promise.withResolvers<void>()
  #again: NodeJS.Timeout | undefined

  constructor(redisUrl: string, log: Log, gone: () => void) {
    this.#redisUrl = redisUrl
    this.#log = log
    this.#gone = gone
    this.#start()
  }

  tend(charge: Charge): Tended {
    const { number } = charge
    this.#charges.set(number, charge)
    this.#send({ kind: 'tend', charge })
    if (this.#redis !== undefined) this.#renewHere(charge)
    return {
      ready: this.#ready.promise,
      add: (table) => {
        this.#charges.set(number, { ...charge, tables: [...(this.#charges.get(number)?.tables ?? []), table] })
        this.#send({ kind: 'table', number, table })
        this.#here.get(number)?.add(table)
      },
      leave: () => {
        if (!this.#charges.delete(number)) return
        this.#send({ kind: 'leave', number })
        this.#here.get(number)?.end()
        this.#here.delete(number)
        if (this.#charges.size === 0) this.#end()
      },
    }
  }

  #send(order: Order): void {
    this.#worker?.postMessage(order)
  }

  #start(): void {
    keepWrappersGeneric()
    const began = performance.now()
    const died = (err: unknown): void => {
      this.#worker = undefined
      if (performance.now() - began > RESTART.lastMs) this.#failures = 0
      this.#fallBack(err)
    }
    try {
      // The process's own preloads and loaders are not for this thread.
      const data = { workerData: { redisUrl: this.#redisUrl }, execArgv: [], name: 'bullpen locks' }
      const worker = new Worker(ENTRY, data)
      this.#worker = worker
      worker.unref()
      let failure: unknown
      worker.on('error', (error) => {
        failure = error
      })
      // The only message: it has reached Redis.
      worker.on('message', () => {
        this.#ready.resolve()
        this.#stopHere()
      })
      worker.on('exit', (code) => {
        if (this.#worker === worker) died(failure ?? new Error(`it exited with ${code}`))
      })
      for (const charge of this.#charges.values()) this.#send({ kind: 'tend', charge })
    } catch (error) {
      died(error)
    }
  }

  #fallBack(err: unknown): void {
    const afterMs = Math.min(RESTART.firstMs * 2 ** this.#failures++, RESTART.lastMs)
    this.#log.warn({ err, afterMs }, 'locks are renewed in the event loop that handlers run in: their thread ended')
    this.#redis ??= renewalConnection(this.#redisUrl)
    for (const charge of this.#charges.values()) this.#renewHere(charge)
    this.#ready.resolve()
    this.#again = setTimeout(() => this.#start(), afterMs).unref()
  }

  #renewHere(charge: Charge): void {
    if (this.#redis === undefined || this.#here.has(charge.number)) return
    this.#here.set(charge.number, startRenewal(this.#redis, charge))
  }

  #stopHere(): void {
    for (const renewal of this.#here.values()) renewal.end()
    this.#here.clear()
    this.#redis?.disconnect()
    this.#redis = undefined
  }

  #end(): void {
    this.#gone()
    this.#ready.resolve()
    clearTimeout(this.#again)
    this.#stopHere()
    this.#send({ kind: 'end' })
    this.#worker = undefined
  }
}
