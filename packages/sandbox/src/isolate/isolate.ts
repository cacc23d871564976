// The port to one thread or child process.
import type { EndReason } from '@bullpen/contract'
import type { FromIsolate, ToIsolate } from '../protocol/messages.ts'

/** How an isolate ended. An attempt that was running in it ends with `reason`. */
export interface IsolateExit {
  readonly reason: EndReason<'RECOVER_ERR'> & ('isolate_died' | 'out_of_memory')
  /** A message that names the exit code or the signal. */
  readonly message: string
  readonly cause?: Error
}

export interface Isolate {
  /** The name for logs, such as `thread 7` or `process 4711`. */
  readonly name: string
  send(message: ToIsolate): void
  /** Ends the isolate immediately, whatever it is doing. Idempotent. */
  kill(): void
  /** Returns whether earlier tasks have left so much in the isolate's memory that it should not run another task. */
  isFull(): boolean
}

export interface IsolateListener {
  /** Returns the message of Bullpen in what was received, if there is one. Ends the attempt if it is forged. Never throws. */
  read(received: unknown): FromIsolate | undefined
  /** Called with each message, in the order in which they were sent and before `onExit`. Never throws. */
  onMessage(message: FromIsolate): void
  /** Called once, when the thread or process is gone. */
  onExit(exit: IsolateExit): void
}

/** Starts an isolate. Never throws: if the isolate can't be started, `onExit` is called. Only processes have a memory limit. */
export type StartIsolate = (listener: IsolateListener, memoryLimitBytes: number | undefined) => Isolate
