// The messages between the main thread and the monitor thread.
import type { LogLevel } from '@bullpen/contract'
import type { Attempt } from '@bullpen/engine/internal'

/** Names the attempt whose code runs in the event loop, with the fields that log lines use. */
export type AttemptInLoop = Readonly<Pick<Attempt, 'id' | 'fencingToken' | 'attempt'> & { task: string }>

/** Given to the monitor thread when it starts. */
export interface MonitorOptions {
  /** One 32-bit number, which the main thread increments with every tick. */
  readonly ticks: SharedArrayBuffer
  readonly warnAfterMs: number
  /** The key of a global symbol: the function under it returns the attempt that runs now, as JSON. */
  readonly hook: string
  readonly log: { readonly level: LogLevel; readonly name: string }
}

/** From the monitor thread: a stall that it has logged is over. */
export interface StallOver {
  readonly attempt: AttemptInLoop | undefined
  readonly location: string | undefined
}
