// Limits how much of Redis's memory the records of idempotency keys take. When the records have used up their share, a call with
// an idempotency key is refused, unless an earlier call with the same key is remembered.
//
// Each producer counts the records that it stores (./record-counts.ts). It adds them to the counts of all queues, and reads these,
// every 2 s while it enqueues with keys, and every minute otherwise. Between two readings, a producer knows only its own records,
// so several producers together may exceed the share by what they store within 2 s. An enqueue does not wait for a reading.
import { BullpenError, type Log } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { addressOf } from '../redis/outages/outage-reporter.ts'
import { isCluster } from '../redis/redis-client.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import type { Commander } from '../scripts/script.ts'
import { createRecordCounts, type RecordCounts } from './record-counts.ts'

/** The default share, as a percentage of Redis's memory. */
export const DEFAULT_IDEMPOTENCY_SHARE = 25
/** The assumed size of a record, in bytes. The fewer records a hash contains, the more memory each of them takes. */
export const RECORD_BYTES = 150
/** How often the records are counted, in ms: while calls have idempotency keys, and otherwise. */
const READ_EVERY_MS = 2_000
const IDLE_READ_EVERY_MS = 60_000
/** The minimum time between two log lines about refused calls, in ms. */
const LOG_EVERY_MS = 30_000

export interface IdempotencyMemory {
  /**
   * Returns undefined if there is room for another record in the queue. Otherwise, returns the error `idempotency_full`, which
   * applies unless the call is remembered. Does not query Redis.
   */
  refusal(queue: string): BullpenError | undefined
  /**
   * Notes that a task with an idempotency key is sent to Redis. The returned function must be called once, when it is known
   * whether a record was stored.
   */
  expect(task: NewTask): (isStored: boolean) => void
  /**
   * Returns how much memory the records of all queues take, in bytes, or undefined before the first reading. Does not query
   * Redis.
   */
  usedBytes(): number | undefined
  /** Stops the readings, and counts the records that were not counted yet. Never rejects. Takes at most one round trip. */
  close(): Promise<void>
}

export interface IdempotencyMemoryOptions {
  readonly redis: Commander
  readonly redisUrl: string
  readonly namespace: string
  readonly queues: readonly string[]
  /** The percentage of the memory that the records may take. */
  readonly sharePercent: number
  /** Returns the memory of the queue's server in bytes, or undefined if it is unknown. In that case, no call is refused. */
  readonly limitBytes: (queue: string) => number | undefined
  /** Returns the time in ms since 1970. */
  readonly now: () => number
  /** Returns undefined if the namespace is known to be compatible, and otherwise a promise that rejects if it is not. */
  readonly checkSchema: () => Promise<void> | undefined
  readonly log: Log
}

/** Starts limiting the records. The timer does not keep the process alive. */
export function openIdempotencyMemory(options: IdempotencyMemoryOptions): IdempotencyMemory {
  const { redis, redisUrl, namespace, queues, sharePercent, limitBytes, now, checkSchema, log } = options
  const address = addressOf(redisUrl)
  // Each node of a cluster has its own memory, and queues may move between nodes, so each queue is limited separately.
  const groups = isCluster(redis) ? queues.map((queue) => [queue]) : [queues]
  const accounts = groups.map((names) =>
    createRecordAccount(createRecordCounts({ redis, namespace, queues: names, now }), checkSchema),
  )
  const byQueue = new Map(groups.flatMap((names, i) => names.map((queue) => [queue, accounts[i]] as const)))

  const logRefused = throttledLog<{ readonly recordBytes: number; readonly limitBytes: number }>(
    ({ recordBytes, limitBytes }, suppressed) =>
      log.warn(
        { redis: address, recordBytes, limitBytes, suppressed },
        'calls refused: idempotency keys have used up their memory',
      ),
    Date.now,
    LOG_EVERY_MS,
  )

  const tick = (): void => {
    for (const account of accounts) account.tick(performance.now())
  }
  const timer = setInterval(tick, READ_EVERY_MS).unref()
  redis.on('ready', tick)

  return {
    refusal(queue) {
      const account = byQueue.get(queue)
      if (account === undefined) return undefined
      const limit = limitBytes(queue)
      const recordBytes = account.records() * RECORD_BYTES
      account.noteUse()
      if (limit === undefined || recordBytes + RECORD_BYTES <= (limit * sharePercent) / 100) return undefined
      logRefused({ recordBytes, limitBytes: limit })
      return full(address, recordBytes, limit, sharePercent)
    },
    expect({ queue, idempotency }) {
      const account = byQueue.get(queue)
      return account === undefined || idempotency === undefined ? () => {} : account.expect(queue, idempotency.life)
    },
    usedBytes() {
      return accounts.some((account) => account.isKnown())
        ? sum(accounts.map((account) => account.records())) * RECORD_BYTES
        : undefined
    },
    async close() {
      clearInterval(timer)
      redis.off('ready', tick)
      // If Redis is not reachable, these records are never counted.
      await Promise.allSettled(accounts.map((account) => account.flush()))
    },
  }
}

/** The records of a group of queues. */
interface RecordAccount extends RecordCounts {
  /** Notes that a call depends on the number of records, so that the number is read at the next tick. */
  noteUse(): void
  /** Reads the counts if a reading is due. */
  tick(now: number): void
}

function createRecordAccount(counts: RecordCounts, checkSchema: () => Promise<void> | undefined): RecordAccount {
  let sentAt = Number.NEGATIVE_INFINITY
  let isUsed = false
  let isReading = false

  async function read(now: number): Promise<void> {
    isReading = true
    isUsed = false
    sentAt = now
    try {
      await checkSchema()
      await counts.exchange()
    } catch {
      // The outage reporter logs connection errors. The next tick tries again.
      isUsed = true
    } finally {
      isReading = false
    }
  }

  return {
    ...counts,
    expect(queue, life) {
      const settle = counts.expect(queue, life)
      return (isStored) => {
        settle(isStored)
        isUsed = true
      }
    },
    noteUse() {
      isUsed = true
    },
    tick(now) {
      if (!isReading && (isUsed || now - sentAt >= IDLE_READ_EVERY_MS)) void read(now)
    },
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}

function full(address: string, recordBytes: number, limitBytes: number, sharePercent: number): BullpenError {
  const [recordMb, limitMb] = [recordBytes, limitBytes].map((bytes) => (bytes / 1e6).toFixed(1))
  return new BullpenError(
    'idempotency_full',
    `the task was not accepted: idempotency keys take about ${recordMb} MB of the memory of Redis at ${address}, and their limit is ${sharePercent}% of ${limitMb} MB; retry after keys have expired, enqueue without a key, or give keys a shorter life or more memory (BULLPEN_API_IDEMPOTENCY_MEMORY_SHARE)`,
  )
}
