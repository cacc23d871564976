// Defines the messages between the main thread and the monitor thread.
import type { LogLevel } from '@bullpen/contract'
import type { Attempt } from '@bullpen/engine/internal'

/** Identifies the attempt whose code is running in the event loop, with the fields that log lines use. */
export type AttemptInLoop = Readonly<Pick<Attempt, 'id' | 'fencingToken' | 'attempt'> & { task: string }>

/** The options that are passed to the monitor thread when it starts. */
export interface MonitorOptions {
  /** One 32-bit number, which the main thread increments with every tick. */
  readonly ticks: SharedArrayBuffer
  readonly warnAfterMs: number
  /** The key of a global symbol. The function stored under that symbol returns the running attempt as JSON. */
  readonly hook: string
  readonly log: { readonly level: LogLevel; readonly name: string }
}

/** A message to the monitor thread. */
export type ToMonitor = 'stop' | { readonly logLevel: LogLevel }

/** The message that the monitor thread sends when a stall that it has logged is over. */
export interface StallOver {
  readonly attempt: AttemptInLoop | undefined
  readonly location: string | undefined
}
