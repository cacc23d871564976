// Monitors how much memory a Redis server uses while this process stores tasks on it.
//
// The meter reads the memory every 250 ms while tasks are enqueued, and every 10 s otherwise. Each reading also registers this
// process as one of the producers that share the memory. A plain enqueue does not wait for a reading.
import { setTimeout as sleep } from 'node:timers/promises'
import { infoField, infoNumber } from '../redis/server/server-info.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { readMemoryScript } from '../store/scripts.ts'
import { createMemoryAccount } from './memory-account.ts'
import { LEAST_BETWEEN_MS, type MemoryDecision } from './memory-credit.ts'

/** How often the memory is read while tasks are enqueued, in ms. */
export const READ_EVERY_MS = 250
/** How often the memory is read while no tasks are enqueued, in ms. */
const IDLE_READ_EVERY_MS = 10_000
/** How long after its last reading a producer still counts as one that shares the memory, in ms. */
const SILENCE_MS = 30_000
/** How long a task waits for a reading that shows whether there is room, in ms. After this time, the task is refused. */
const MOST_WAIT_MS = 500

export interface ServerMemory {
  /** The memory use that Redis compares with its limit, in bytes. */
  readonly usedBytes: number
  /** `maxmemory`, or the machine's memory if Redis has no limit, in bytes. */
  readonly limitBytes: number
  /** Redis's `maxmemory-policy`. */
  readonly policy: string
}

export interface MemoryMeter {
  /**
   * Decides whether a task that takes `costBytes` may be stored. Nearly always returns a boolean. Otherwise returns a promise,
   * which resolves within half a second after the first reading, or rejects with Redis's error if the memory cannot be read.
   */
  admits(costBytes: number): boolean | Promise<boolean>
  /** Returns the last reading. It is undefined before the first one, and 'unknown' if Redis does not report its memory. */
  latest(): ServerMemory | 'unknown' | undefined
  /** Reads the memory. Takes one round trip, which concurrent calls share. */
  read(): Promise<void>
  /** Reads the memory if a reading is due. Call this method every {@link READ_EVERY_MS}. */
  tick(): void
}

export interface MeterOptions {
  readonly redis: Commander
  /** The sorted set of producers. In a cluster, the memory is that of the node that holds this key. */
  readonly key: string
  /** A name that no other producer has. */
  readonly producer: string
  /** The number of meters that each producer has for the same server. */
  readonly meters: number
  /** The share of the memory at which admission stops, from 0 to 1. */
  readonly watermark: number
  /** Returns undefined if the namespace is known to be compatible, and otherwise a promise that rejects if it is not. */
  readonly checkSchema: () => Promise<void> | undefined
}

export function createMemoryMeter(options: MeterOptions): MemoryMeter {
  const { redis, key, producer, meters, watermark, checkSchema } = options
  const account = createMemoryAccount({ watermark, now: () => performance.now() })
  let latest: ServerMemory | 'unknown' | undefined
  let sentAt = Number.NEGATIVE_INFINITY
  /** Whether a task has been enqueued since the last reading. */
  let isActive = false
  let reading: Promise<void> | undefined

  const send = async (): Promise<void> => {
    const early = sentAt + LEAST_BETWEEN_MS - performance.now()
    if (early > 0) await sleep(early)
    // A reading that could not be sent is retried after the same interval as one that was sent.
    sentAt = performance.now()
    await checkSchema()
    sentAt = performance.now()
    isActive = false
    const received = account.beginReading()
    const args = { producer, silence: SILENCE_MS }
    const [info, producers, isNew] = await runScript(redis, readMemoryScript, { producers: key }, args)
    const memory = parseMemory(info)
    latest = memory ?? 'unknown'
    received(memory && { ...memory, producers: producers * meters }, isNew === 1)
  }
  const read = (): Promise<void> => {
    reading ??= send().finally(() => {
      reading = undefined
    })
    return reading
  }
  // The outage reporter logs connection errors. If a task needs a reading and the reading fails, the enqueue rejects with the
  // reading's error.
  const readInBackground = (): void => void read().catch(() => {})

  const decideAfterReading = async (costBytes: number): Promise<boolean> => {
    const until = performance.now() + MOST_WAIT_MS
    let decision: MemoryDecision
    do {
      await read()
      decision = account.decide(costBytes)
    } while (decision === 'read' && performance.now() < until)
    return decision === 'admit'
  }

  return {
    admits(costBytes) {
      isActive = true
      const decision = account.decide(costBytes)
      if (decision === 'read') return decideAfterReading(costBytes)
      if (decision === 'admit' && account.isReadingDue()) readInBackground()
      return decision === 'admit'
    },
    latest: () => latest,
    read,
    tick() {
      if (isActive || performance.now() - sentAt >= IDLE_READ_EVERY_MS) readInBackground()
    },
  }
}

/** Parses the output of `INFO memory`. Returns undefined if the output lacks the used memory or the available memory. */
export function parseMemory(info: string): ServerMemory | undefined {
  const used = infoNumber(info, 'used_memory')
  const limit = infoNumber(info, 'maxmemory') || infoNumber(info, 'total_system_memory')
  if (used === undefined || !limit) return undefined
  // Redis does not count these bytes, which hold the buffers for its replicas and its append-only file, toward its limit.
  const uncounted = infoNumber(info, 'mem_not_counted_for_evict') ?? 0
  return { usedBytes: used - uncounted, limitBytes: limit, policy: infoField(info, 'maxmemory_policy') ?? 'noeviction' }
}
