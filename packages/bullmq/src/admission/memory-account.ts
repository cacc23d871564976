// Tracks how many bytes one producer has spent since it last read Redis's memory, and how far that reading can be trusted.
import {
  CURRENT_MS,
  decideOnMemory,
  isReadingDue,
  type MemoryDecision,
  type MemoryReading,
  type Spending,
  type Trust,
} from './memory-credit.ts'

/**
 * Takes the result of a reading. `reading` is undefined if Redis does not report its memory, in which case every task is
 * admitted. `isNew` says whether the producer has just joined.
 */
export type Received = (reading: MemoryReading | undefined, isNew: boolean) => void

export interface MemoryAccount {
  /** Decides whether to admit a task that takes `costBytes`. If the task is admitted, adds its cost to the spent bytes. */
  decide(costBytes: number): MemoryDecision
  /** Returns whether another reading should be taken in the background. */
  isReadingDue(): boolean
  /** Call this method just before requesting a reading, and call the returned function with the result. */
  beginReading(): Received
  /** Returns the last reading, or undefined if there is none. */
  lastReading(): MemoryReading | undefined
}

/** Creates an account. `now` returns the time of a monotonic clock, in ms. */
export function createMemoryAccount({
  watermark,
  now,
}: {
  /** The share of the memory at which admission stops, from 0 to 1. */
  readonly watermark: number
  readonly now: () => number
}): MemoryAccount {
  let reading: MemoryReading | undefined
  let isUnknown = false
  let readAt = 0
  let joinedAt = 0
  let spentBytes = 0

  const trust = (at: number): Trust => {
    if (at - readAt > CURRENT_MS) return 'outdated'
    return at - joinedAt < CURRENT_MS ? 'new' : 'current'
  }
  const spendingAt = (known: MemoryReading, at: number): Spending => ({
    reading: known,
    watermark,
    trust: trust(at),
    spentBytes,
  })

  return {
    decide(costBytes) {
      if (reading === undefined) return isUnknown ? 'admit' : 'read'
      const decision = decideOnMemory(spendingAt(reading, now()), costBytes)
      if (decision === 'admit') spentBytes += costBytes
      return decision
    },
    isReadingDue() {
      const at = now()
      return reading !== undefined && isReadingDue(spendingAt(reading, at), at - readAt)
    },
    beginReading() {
      const sentAt = now()
      // Redis executes the commands of a connection in order, so the reading includes the tasks that were sent before it.
      const spentBefore = spentBytes
      return (received, isNew) => {
        reading = received
        isUnknown = received === undefined
        readAt = sentAt
        if (isNew) joinedAt = sentAt
        spentBytes -= spentBefore
      }
    },
    lastReading: () => reading,
  }
}
