// What the renewing thread is charged with, and told later.
import type { SharedTable } from './shared-lock-table.ts'

/** The locks of one feed. */
export interface Charge {
  readonly number: number
  /** BullMQ's keys of the queue begin with it. */
  readonly base: string
  readonly lockMs: number
  readonly renewalMs: number
  /** A main loop that has not beaten for longer has lost its locks. Undefined: there is no such limit. */
  readonly eventLoopStallLimitMs: number | undefined
  /** One 32-bit number: when the main loop last turned, by the machine's clock. */
  readonly beat: SharedArrayBuffer
  /** Grows; every one stays in use. */
  readonly tables: readonly SharedTable[]
}

export type Order =
  | { readonly kind: 'tend'; readonly charge: Charge }
  | { readonly kind: 'table'; readonly number: number; readonly table: SharedTable }
  | { readonly kind: 'leave'; readonly number: number }
  | { readonly kind: 'end' }
