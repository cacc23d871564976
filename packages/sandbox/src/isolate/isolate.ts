// The port to one thread or child process.
import type { EndReason } from '@bullpen/contract'
import type { FromIsolate, ToIsolate } from '../protocol/messages.ts'

/** How an isolate ended. An attempt that was running in it ends with `reason`. */
export interface IsolateExit {
  readonly reason: EndReason<'RECOVER_ERR'> & ('isolate_died' | 'out_of_memory')
  /** Names the exit code or the signal. */
  readonly message: string
  readonly cause?: Error
}

export interface Isolate {
  /** For logs: `thread 7`, `process 4711`. */
  readonly name: string
  send(message: ToIsolate): void
  /** Ends the isolate at once, whatever it is doing. Idempotent. */
  kill(): void
  /** Whether earlier tasks left so much in its memory that it should not run another one. */
  isFull(): boolean
}

export interface IsolateListener {
  /** In the order of sending; all messages come before `onExit`. */
  onMessage(message: FromIsolate): void
  /** Called once, when the thread or process is gone. */
  onExit(exit: IsolateExit): void
}

/** Never throws: an isolate that can't be started exits. Only processes have a memory limit. */
export type StartIsolate = (listener: IsolateListener, memoryLimitBytes: number | undefined) => Isolate
