// Refuses new tasks when Redis's memory reaches the watermark, well before Redis refuses every write, so that workers can always
// finish what was accepted. Also refuses them on a server that may evict tasks.
//
// Only producers check. A worker's child tasks are stored until Redis is full, because refusing them would stop tasks that run.
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { BullpenError, type Log } from '@bullpen/contract'
import { producersKey, queueKeys } from '../keys.ts'
import { addressOf } from '../redis/outages/outage-reporter.ts'
import { isCluster } from '../redis/redis-client.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import type { Commander } from '../scripts/script.ts'
import { costOf } from './memory-credit.ts'
import { createMemoryMeter, type MemoryMeter, READ_EVERY_MS, type ServerMemory } from './memory-meter.ts'

/** The default watermark, as a percentage of Redis's memory. */
export const DEFAULT_WATERMARK = 80
/** The default limit for the unfinished tasks of one queue, as a percentage of Redis's memory. */
export const DEFAULT_QUEUE_SHARE = 50
/** The minimum time between two log lines about refused tasks, in ms. */
const LOG_EVERY_MS = 30_000

export interface MemoryAdmission {
  /**
   * Returns undefined if there is room for `tasks` tasks whose stored strings together have `dataBytes` bytes. If the memory must be
   * read first, returns a promise that resolves once a reading shows that there is room. The promise takes one round trip, or several
   * if many tasks wait for room.
   *
   * @throws BullpenError `redis_full` if the memory has reached the watermark, or `unsafe_redis` if the server may evict tasks.
   * The promise rejects with the same errors.
   */
  admit(queue: string, dataBytes: number, tasks: number): Promise<void> | undefined
  /**
   * Returns how many bytes a queue's unfinished tasks may take if no other limit is set: a share of the memory of the queue's
   * server. Returns undefined if the memory is not known. Does not query Redis.
   */
  maxBytesOf(queue: string): number | undefined
  /**
   * Reads the memory of each server that has not been read yet. Takes up to one round trip for each server.
   *
   * @throws BullpenError `unsafe_redis` if the server may evict tasks.
   */
  check(): Promise<void>
  /**
   * Returns the last reading, or undefined if there is none. In a cluster, returns the reading of the node with the least room.
   * Does not query Redis.
   */
  latest(): ServerMemory | undefined
  /** Returns the memory of the queue's server in bytes, or undefined if it is unknown. Does not query Redis. */
  limitBytes(queue: string): number | undefined
  close(): void
}

export interface MemoryAdmissionOptions {
  readonly redis: Commander
  readonly redisUrl: string
  readonly namespace: string
  readonly queues: readonly string[]
  /** The percentage of the memory at which admission stops. */
  readonly watermark: number
  /** The limit for the unfinished tasks of one queue, as a percentage of the memory. */
  readonly queueShare: number
  readonly allowsEviction: boolean
  /** Returns undefined if the namespace is known to be compatible, and otherwise a promise that rejects if it is not. */
  readonly checkSchema: () => Promise<void> | undefined
  readonly log: Log
}

/** Opens the memory-based admission check. Its timer does not keep the process alive. */
export function openMemoryAdmission(options: MemoryAdmissionOptions): MemoryAdmission {
  const { redis, redisUrl, namespace, queues, watermark, queueShare, allowsEviction, checkSchema, log } = options
  const address = addressOf(redisUrl)
  const producer = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
  const meterFor = (key: string, meters: number): MemoryMeter =>
    createMemoryMeter({ redis, key, producer, meters, watermark: watermark / 100, checkSchema })
  const only = isCluster(redis) ? undefined : meterFor(producersKey(namespace), 1)
  // Each node of a cluster has its own memory, and queues may move between nodes, so each queue has its own meter.
  const byQueue = new Map(
    queues.map((queue) => [queue, only ?? meterFor(queueKeys(namespace, queue).producers, queues.length)]),
  )
  const meters = new Set(byQueue.values())

  const logRefused = throttledLog<ServerMemory>(
    ({ usedBytes, limitBytes }, suppressed) =>
      log.warn({ redis: address, usedBytes, limitBytes, suppressed }, 'tasks refused: Redis is almost out of memory'),
    Date.now,
    LOG_EVERY_MS,
  )
  const logUnknown = once(() =>
    log.info({ redis: address }, 'redis does not report its memory: tasks are accepted until Redis refuses them'),
  )

  const assertKept = (meter: MemoryMeter): void => {
    const memory = meter.latest()
    if (memory === 'unknown') logUnknown()
    else if (memory !== undefined && memory.policy !== 'noeviction' && !allowsEviction) throw evicting(address, memory)
  }
  const settle = (meter: MemoryMeter, isAdmitted: boolean): void => {
    assertKept(meter)
    const memory = meter.latest()
    if (isAdmitted || memory === undefined || memory === 'unknown') return
    logRefused(memory)
    throw full(address, memory, watermark)
  }

  const tick = (): void => {
    for (const meter of meters) meter.tick()
  }
  const readAll = (): void => {
    for (const meter of meters) meter.read().catch(() => {})
  }
  const timer = setInterval(tick, READ_EVERY_MS).unref()
  redis.on('ready', readAll)

  return {
    admit(queue, dataBytes, tasks) {
      const meter = byQueue.get(queue)
      if (meter === undefined) return undefined
      const isAdmitted = meter.admits(costOf(dataBytes, tasks))
      if (typeof isAdmitted !== 'boolean') return isAdmitted.then((admitted) => settle(meter, admitted))
      settle(meter, isAdmitted)
      return undefined
    },
    maxBytesOf(queue) {
      const memory = byQueue.get(queue)?.latest()
      if (memory === undefined || memory === 'unknown') return undefined
      return Math.floor((memory.limitBytes * queueShare) / 100)
    },
    async check() {
      for (const meter of meters) {
        if (meter.latest() === undefined) await meter.read()
        assertKept(meter)
      }
    },
    limitBytes(queue) {
      const memory = byQueue.get(queue)?.latest()
      return memory === 'unknown' ? undefined : memory?.limitBytes
    },
    latest: () => fullest([...meters].map((meter) => meter.latest())),
    close() {
      clearInterval(timer)
      redis.off('ready', readAll)
    },
  }
}

function fullest(readings: readonly (ServerMemory | 'unknown' | undefined)[]): ServerMemory | undefined {
  const known = readings.filter((each) => each !== undefined && each !== 'unknown')
  return known.toSorted((a, b) => b.usedBytes / b.limitBytes - a.usedBytes / a.limitBytes)[0]
}

function full(address: string, { usedBytes, limitBytes }: ServerMemory, watermark: number): BullpenError {
  const used = ((100 * usedBytes) / limitBytes).toFixed(1)
  const [usedMb, limitMb] = [usedBytes, limitBytes].map((bytes) => Math.round(bytes / 1e6))
  if (Number(used) < watermark) {
    return new BullpenError(
      'redis_full',
      `the task was not accepted: more is being enqueued than may be stored before the memory of Redis at ${address} is read again (${used}% of ${limitMb} MB are used); retry, or enqueue smaller or fewer tasks at once`,
    )
  }
  return new BullpenError(
    'redis_full',
    `the task was not accepted: Redis at ${address} uses ${used}% of its memory (${usedMb} of ${limitMb} MB), and the limit for new tasks is ${watermark}%; retry after tasks have finished, or give Redis more memory`,
  )
}

function evicting(address: string, { policy }: ServerMemory): BullpenError {
  return new BullpenError(
    'unsafe_redis',
    `Redis at ${address} may delete tasks because its maxmemory-policy is ${policy}; set the policy to noeviction, or allow eviction (BULLPEN_API_ALLOW_EVICTION=true)`,
  )
}

function once(act: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    act()
  }
}
