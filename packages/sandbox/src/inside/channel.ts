// What the inside of a thread and of a child process have in common: messages to and from the worker, and an end.
import type { FromIsolate, ToIsolate } from '../protocol/messages.ts'

export interface Channel {
  /** @throws DataCloneError when part of the message can't be cloned. */
  send(message: FromIsolate): void
  listen(listener: (message: ToIsolate) => void): void
  /** Ends this thread or process. */
  end(): void
}
