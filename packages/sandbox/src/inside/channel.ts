// Defines what the code inside a thread and inside a child process have in common: messages to and from the worker, and a way to
// end the isolate.
import type { EnvelopeFromIsolate } from '../protocol/envelope.ts'

export interface Channel {
  /** Sends a message to the worker. @throws DataCloneError if part of the message can't be cloned. */
  send(envelope: EnvelopeFromIsolate): void
  /** Calls the listener with everything that is received. Handlers and libraries may send messages of their own. */
  listen(listener: (received: unknown) => void): void
  /** Called after the module of a handler has been imported. */
  imported?(): void
  /** Ends this thread or process. */
  end(): void
}
