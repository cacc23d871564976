// The port to one thread or one child process, which its pool starts, speaks to and ends.
import type { EndReason } from '@bullpen/contract'
import type { FromIsolate, ToIsolate } from '../protocol/messages.ts'

/** How an isolate came to its end: the reason is what a task that was running in it ends with. */
export interface Death {
  readonly reason: EndReason<'RECOVER_ERR'> & ('isolate_died' | 'out_of_memory')
  /** What happened, naming exit code or signal. */
  readonly message: string
  readonly cause?: Error
}

export interface Isolate {
  /** For logs: `thread 7`, `process 4711`. */
  readonly name: string
  send(message: ToIsolate): void
  /** Ends it at once, whatever it does. Twice is once. */
  kill(): void
  /** Too full of what earlier tasks left in its memory for another one. */
  isFull(): boolean
}

export interface IsolateListener {
  /** In the order in which they were sent, and all of them before `ended`. */
  heard(message: FromIsolate): void
  /** Once. Nothing of it is left then. */
  ended(death: Death): void
}

/** Starts an isolate; never throws: what can't be started ends. The limit is for processes alone. */
export type StartIsolate = (listener: IsolateListener, memoryLimitBytes: number | undefined) => Isolate
