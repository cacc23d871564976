// Decides whether a producer may store a task, from what the producer knows about Redis's memory. This module does no I/O.
//
// Redis refuses every write at `maxmemory`, so admission stops at a lower share, the watermark. A producer does not query Redis
// before each task. Instead, it reads the memory periodically. Each reading gives the producer a credit in bytes, which it spends
// on tasks until the next reading.
//
// Several producers hold credits at the same time, and each may still spend its own after the others have reached the watermark.
// Each credit is therefore limited to a share of FULL_CREDIT, so that all of these credits together exceed the watermark by at
// most FULL_CREDIT. A producer that the others have not counted yet, or that has been idle, may exceed the watermark further, so
// its credit is limited to a share of LIMITED_CREDIT. If the room below the watermark is smaller than FULL_CREDIT, the producers
// share that room instead. When a producer has spent its credit, it reads the memory again and receives a new credit. Small
// credits therefore cost nothing but additional readings.

/** What all producers together may spend between two readings, as a share of Redis's memory. */
export const FULL_CREDIT = 0.03
/**
 * The same limit for new producers, which the others do not count yet, and for producers whose reading is out of date. If a
 * hundred processes start at the same time, their credits add up to 2.6% of the memory: this share times the sum of 1 + 1/2 + … +
 * 1/100.
 */
export const LIMITED_CREDIT = 0.005

/** How old a reading may be before it is out of date, in ms. */
export const CURRENT_MS = 500
/** The shortest time between two readings, in ms. */
export const LEAST_BETWEEN_MS = 25

/**
 * The memory that a task takes in Redis besides its data, in bytes: its other fields, its place in the queue, its event and its
 * record.
 */
const TASK_OVERHEAD_BYTES = 1_024
/** Redis's allocator rounds a value's size up by at most a quarter. */
const ROUNDED_UP = 1.25

export interface MemoryReading {
  /** The memory use that Redis compares with its limit, in bytes. */
  readonly usedBytes: number
  /** `maxmemory`, or the machine's memory if Redis has no limit, in bytes. */
  readonly limitBytes: number
  /** The number of producers that share the memory, including this one. */
  readonly producers: number
}

/**
 * - `new`: the other producers may not have counted this one yet
 * - `current`: the reading is recent, as are the readings of the other producers that store tasks
 * - `outdated`: the producer was idle, and others may have used the memory in the meantime
 */
export type Trust = 'new' | 'current' | 'outdated'

/**
 * - `admit`: the task is within the credit
 * - `read`: the reading does not show whether there is room, so the producer must read the memory again
 * - `refuse`: the task would pass the watermark
 */
export type MemoryDecision = 'admit' | 'read' | 'refuse'

export interface Spending {
  readonly reading: MemoryReading
  /** The share of the memory at which admission stops, from 0 to 1. */
  readonly watermark: number
  readonly trust: Trust
  /** The size of the tasks that this producer has admitted since the reading, in bytes. */
  readonly spentBytes: number
}

/**
 * Returns an upper estimate of the memory that tasks take in Redis, in bytes. `dataBytes` is the size of their stored strings
 * together.
 */
export function costOf(dataBytes: number, tasks: number): number {
  return tasks * TASK_OVERHEAD_BYTES + ROUNDED_UP * dataBytes
}

/**
 * Returns the total number of bytes that the reading allows this producer to spend. Returns 0 if the memory has reached the
 * watermark.
 */
export function creditOf({ reading, watermark, trust }: Omit<Spending, 'spentBytes'>): number {
  const { usedBytes, limitBytes, producers } = reading
  const shared = (trust === 'current' ? FULL_CREDIT : LIMITED_CREDIT) * limitBytes
  return Math.max(0, Math.min(shared, watermark * limitBytes - usedBytes)) / producers
}

/** Decides whether to admit a task that takes `costBytes`. */
export function decideOnMemory(spending: Spending, costBytes: number): MemoryDecision {
  const { reading, watermark, trust, spentBytes } = spending
  const isWithin = spentBytes + costBytes <= creditOf(spending)
  if (trust === 'outdated') return isWithin ? 'admit' : 'read'
  if (reading.usedBytes + spentBytes + costBytes > watermark * reading.limitBytes) return 'refuse'
  // Without the second condition, a task that is larger than the credit would never be admitted.
  return isWithin || spentBytes === 0 ? 'admit' : 'read'
}

/**
 * Returns whether to read the memory again even though the task was admitted, so that later tasks do not have to wait for a
 * reading. `ageMs` is the current reading's age.
 */
export function isReadingDue(spending: Spending, ageMs: number): boolean {
  if (ageMs < LEAST_BETWEEN_MS) return false
  return spending.trust === 'outdated' || spending.spentBytes > creditOf(spending) / 2
}
