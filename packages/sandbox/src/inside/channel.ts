// Defines what the code inside a thread and inside a child process have in common: messages to and from the worker, and a way to
// end the isolate.
import type { FromIsolate, ToIsolate } from '../protocol/messages.ts'

export interface Channel {
  /** Sends a message to the worker. @throws DataCloneError if part of the message can't be cloned. */
  send(message: FromIsolate): void
  listen(listener: (message: ToIsolate) => void): void
  /** Called after the module of a handler has been imported. */
  imported?(): void
  /** Ends this thread or process. */
  end(): void
}
