// What the main thread and the thread that watches it say to each other.

import type { LogLevel } from '@bullpen/contract'
import type { Attempt } from '@bullpen/engine/internal'

/** What is told of the attempt that runs in the loop. */
export type AttemptInLoop = Readonly<Pick<Attempt, 'id' | 'fencingToken' | 'attempt'> & { task: string }>

/** Given to the thread at its start. */
export interface WatchOrders {
  /** One 32-bit number, which the main thread counts up at each beat. */
  readonly beats: SharedArrayBuffer
  readonly warnAfterMs: number
  /** Key of the global symbol under which the main thread's function answers which attempt runs now, as JSON. */
  readonly hook: string
  readonly log: { readonly level: LogLevel; readonly name: string }
}

/** From the thread: a block that it has told of is over. */
export interface BlockOver {
  readonly attempt: AttemptInLoop | undefined
  readonly location: string | undefined
}
