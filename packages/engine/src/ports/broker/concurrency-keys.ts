// Defines what a broker reports of a queue's concurrency keys: how many tasks of each key wait and are active, and what limits them.
import type { KeyBlock, KeyOrder, LimitSource, StartRate } from '@bullpen/contract'

export interface KeyListQuery {
  readonly queue: string
  /** `backlog` lists the keys that have waiting tasks, and `active` those that have active tasks. The largest number comes first. */
  readonly order: KeyOrder
  /** A number from 1 to 200. */
  readonly limit: number
  /** The opaque cursor that the previous page returned. */
  readonly cursor: string | undefined
}

/** Selects a page of a queue's concurrency keys, or a single one. */
export type KeyQuery = KeyListQuery | { readonly queue: string; readonly concurrencyKey: string }

/** A limit that is in force, and what has set it. */
export interface LimitInForce<T> {
  readonly value: T
  readonly source: LimitSource
}

/** A limit of a concurrency key. `isOwn` is false if the limit is that of every key. */
export interface KeyLimit<T> extends LimitInForce<T> {
  readonly isOwn: boolean
}

export interface KeyState {
  readonly key: string
  /** How many tasks of the key wait for their turn. */
  readonly waiting: number
  readonly active: number
  readonly concurrency: KeyLimit<number> | undefined
  readonly rate: KeyLimit<StartRate> | undefined
  /** Why the key may start no task at the moment. */
  readonly blockedBy: readonly KeyBlock[]
  /** When the rate and the throttle allow the next start, in ms since 1970 on the store's clock. Undefined if they allow one now. */
  readonly nextStartAt: number | undefined
}

export interface KeyPage {
  /** When the keys were read, in ms since 1970 on the store's clock. */
  readonly now: number
  readonly keys: readonly KeyState[]
  /** How many keys of the queue have waiting tasks, and how many tasks these are. */
  readonly waitingKeys: number
  readonly waitingTasks: number
  /** False if not all keys or active tasks of the queue were examined. */
  readonly exact: boolean
  readonly next: string | undefined
}
