// Defines the messages that are sent to the lock-renewal thread.
import type { SharedTable } from './shared-lock-table.ts'

/** The locks of one consumer, and how to renew them. */
export interface LockGroup {
  readonly number: number
  /** The prefix of the queue's BullMQ keys. */
  readonly base: string
  readonly lockMs: number
  readonly renewalMs: number
  /**
   * How long the main thread's event loop may be blocked, in ms, before the thread's locks are no longer renewed. Undefined means
   * no limit.
   */
  readonly eventLoopStallLimitMs: number | undefined
  /** One 32-bit number: when the main thread's event loop last turned, by the machine clock. */
  readonly lastTurn: SharedArrayBuffer
  /** Tables are added but never removed. */
  readonly tables: readonly SharedTable[]
}

export type LockMessage =
  | { readonly kind: 'renew'; readonly group: LockGroup }
  | { readonly kind: 'add_table'; readonly number: number; readonly table: SharedTable }
  | { readonly kind: 'release'; readonly number: number }
  | { readonly kind: 'end' }
