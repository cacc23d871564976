// Decides whether a producer may store a task, from what it knows about Redis's memory. There is no I/O here.
//
// Redis refuses every write at `maxmemory`, so admission stops at a lower share, the watermark. A producer does not ask Redis for each
// task. It reads the memory from time to time, and each reading gives the producer a credit in bytes, which it spends on tasks until
// the next reading.
//
// Several producers hold a credit at the same time, and each of them may still spend it after the others have reached the watermark.
// Each credit is therefore limited to a producer's share of FULL_CREDIT. Whatever the producers do, the memory then exceeds the
// watermark by at most FULL_CREDIT, plus what the producers hold that the others do not know of or that have been idle: those get a
// share of LIMITED_CREDIT. If the room below the watermark is smaller than FULL_CREDIT, the producers share the room instead. A
// producer that has spent its credit reads the memory again, which gives it another one, so that small credits cost only readings.

/** What all producers together may spend between two readings, as a share of Redis's memory. */
export const FULL_CREDIT = 0.03
/**
 * The same for producers that are new, which the others do not count yet, and for those whose reading is out of date. A hundred
 * processes that start at the same time hold 2.6 % of the memory together: this share, times the sum of 1 + 1/2 + … + 1/100.
 */
export const LIMITED_CREDIT = 0.005

/** How old a reading may be before it is out of date, in ms. */
export const CURRENT_MS = 500
/** The shortest time between two readings, in ms. */
export const LEAST_BETWEEN_MS = 25

/** What a task takes in Redis besides its data, in bytes: its other fields, its place in the queue, its event and its record. */
const TASK_OVERHEAD_BYTES = 1_024
/** Redis's allocator rounds the size of a value up by a quarter at most. */
const ROUNDED_UP = 1.25

export interface MemoryReading {
  /** What Redis compares with its limit, in bytes. */
  readonly usedBytes: number
  /** `maxmemory`, or the machine's memory if Redis has no limit, in bytes. */
  readonly limitBytes: number
  /** The number of producers that share the memory, including this one. */
  readonly producers: number
}

/**
 * - `new`: the other producers may not have counted this one yet
 * - `current`: the reading is recent, and so are those of the other producers that store tasks
 * - `outdated`: the producer was idle, and others may have used the memory meanwhile
 */
export type Trust = 'new' | 'current' | 'outdated'

/**
 * - `admit`: the task is within the credit
 * - `read`: the reading does not show whether there is room, so that the producer needs another one
 * - `refuse`: the task would pass the watermark
 */
export type MemoryDecision = 'admit' | 'read' | 'refuse'

export interface Spending {
  readonly reading: MemoryReading
  /** The share of the memory at which admission stops, from 0 to 1. */
  readonly watermark: number
  readonly trust: Trust
  /** What this producer has admitted since the reading, in bytes. */
  readonly spentBytes: number
}

/** Returns an upper estimate of what a task takes in Redis, in bytes. `dataBytes` is the size of its stored string. */
export function costOf(dataBytes: number): number {
  return TASK_OVERHEAD_BYTES + ROUNDED_UP * dataBytes
}

/** Returns what this producer may spend in total since the reading, in bytes. It is 0 if the memory has reached the watermark. */
export function creditOf({ reading, watermark, trust }: Omit<Spending, 'spentBytes'>): number {
  const { usedBytes, limitBytes, producers } = reading
  const shared = (trust === 'current' ? FULL_CREDIT : LIMITED_CREDIT) * limitBytes
  return Math.max(0, Math.min(shared, watermark * limitBytes - usedBytes)) / producers
}

/** Decides on a task that takes `costBytes`. */
export function decideOnMemory(spending: Spending, costBytes: number): MemoryDecision {
  const { reading, watermark, trust, spentBytes } = spending
  const isWithin = spentBytes + costBytes <= creditOf(spending)
  if (trust === 'outdated') return isWithin ? 'admit' : 'read'
  if (reading.usedBytes + spentBytes + costBytes > watermark * reading.limitBytes) return 'refuse'
  // A task that is larger than the credit would otherwise never be admitted.
  return isWithin || spentBytes === 0 ? 'admit' : 'read'
}

/**
 * Returns whether to read the memory again although the task was admitted, so that a later task need not wait for a reading. `ageMs`
 * is the age of the reading.
 */
export function isReadingDue(spending: Spending, ageMs: number): boolean {
  if (ageMs < LEAST_BETWEEN_MS) return false
  return spending.trust === 'outdated' || spending.spentBytes > creditOf(spending) / 2
}
