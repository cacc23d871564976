// What a thread and a child process have in common, seen from within: a line to the pool, and an end.
import type { FromIsolate, ToIsolate } from '../protocol/messages.ts'

export interface Channel {
  /** @throws DataCloneError when something in the message can't be cloned. */
  send(message: FromIsolate): void
  listen(listener: (message: ToIsolate) => void): void
  /** Ends this thread or process. */
  end(): void
}
