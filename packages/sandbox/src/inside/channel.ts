// A child process seen from within: a line to the pool, and an end.
import type { FromIsolate, ToIsolate } from '../messages.ts'

export interface Channel {
  /** @throws DataCloneError when something in the message can't be cloned. */
  send(message: FromIsolate): void
  listen(listener: (message: ToIsolate) => void): void
  /** Ends this process. */
  end(): void
}
