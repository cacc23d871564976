// Counts the records of idempotency keys that a process stores, and learns how many all processes have stored.
//
// Redis has a hash for each queue, which counts the records by the time at which they expire. A process adds its own records to
// that hash once per reading, instead of once per record, because counting each record in the script that stores it would take
// Redis 1 µs. If a process is killed, the records that it has stored since its last reading are never counted.
import type { Idempotency } from '@bullpen/engine'
import { queueKeys } from '../keys.ts'
import { mayHaveRun } from '../redis/not-sent.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { countIdempotencyRecordsScript } from '../store/scripts.ts'
import { recordExpiry } from './idempotency-records.ts'

/**
 * The unit, in seconds, to which expiry times are rounded up, since callers may choose any lifetime. The unit is doubled until a
 * lifetime contains at most {@link MAX_UNITS_PER_LIFE} of them. All lifetimes of up to a day together therefore have at most
 * 2,160 counts.
 */
const UNIT_S = 60
const MAX_UNITS_PER_LIFE = 1_440

export interface RecordCounts {
  /** The number of records, including those of this process that may still be stored. */
  records(): number
  /** Whether the counts have been read. */
  isKnown(): boolean
  /** Notes that a record may be stored. The returned function must be called once, when it is known whether it was stored. */
  expect(queue: string, life: Idempotency['life']): (isStored: boolean) => void
  /** Adds the records of this process to the counts of each queue, and reads the counts. Takes one round trip. */
  exchange(): Promise<void>
  /** Adds the records of this process that are not counted yet to the counts. Takes one round trip, or none if there are none. */
  flush(): Promise<void>
}

export interface RecordCountsOptions {
  readonly redis: Commander
  readonly namespace: string
  /** The queues whose records are counted together. */
  readonly queues: readonly string[]
  /** Returns the time in ms since 1970. */
  readonly now: () => number
}

export function createRecordCounts({ redis, namespace, queues, now }: RecordCountsOptions): RecordCounts {
  /** What the last reading of each queue has returned, and the sum. */
  const read = new Map<string, number>()
  let readTotal = 0
  /** The number of calls that may still store a record. */
  let expected = 0
  /** This process's records that have not been added to the counts, by queue and by the time at which they expire. */
  const own = new Map<string, Map<number, number>>()
  /** The number of this process's records that no reading includes. */
  let uncounted = 0

  function note(queue: string, expiresAt: number, records: number): void {
    const counts = own.get(queue) ?? new Map<number, number>()
    own.set(queue, counts.set(expiresAt, (counts.get(expiresAt) ?? 0) + records))
  }

  async function exchangeFor(queue: string): Promise<void> {
    const added = [...(own.get(queue) ?? [])]
    own.delete(queue)
    try {
      const { idempotencyCounts } = queueKeys(namespace, queue)
      read.set(
        queue,
        await runScript(
          redis,
          countIdempotencyRecordsScript,
          { counts: idempotencyCounts },
          {},
          added.flat().map(String),
        ),
      )
      readTotal = sum([...read.values()])
      uncounted -= sum(added.map(([, records]) => records))
    } catch (error) {
      // If Redis may have run the script, the records are not sent again. While Redis hangs, they could be counted at every reading.
      if (!mayHaveRun(error)) for (const [expiresAt, records] of added) note(queue, expiresAt, records)
      else uncounted -= sum(added.map(([, records]) => records))
      throw error
    }
  }

  return {
    records: () => readTotal + uncounted + expected,
    isKnown: () => read.size === queues.length,
    expect(queue, life) {
      expected++
      return (isStored) => {
        expected--
        if (!isStored) return
        uncounted++
        note(queue, countedUntil(life, now() / 1_000), 1)
      }
    },
    async exchange() {
      await Promise.all(queues.map(exchangeFor))
    },
    async flush() {
      await Promise.all([...own.keys()].map(exchangeFor))
    },
  }
}

/** Returns the time by which a record that is stored now has expired, rounded up. All times are in seconds. */
export function countedUntil(life: number, now: number): number {
  let unit = UNIT_S
  while (unit * MAX_UNITS_PER_LIFE < life) unit *= 2
  return Math.ceil(recordExpiry(life, now) / unit) * unit
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0)
}
