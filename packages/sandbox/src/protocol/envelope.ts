// Tells the messages of Bullpen from those that handlers and libraries send over the same channel, and from forged ones.
//
// The worker gives each isolate a key in its first message, before the isolate runs any other code. A handler learns the key only if it
// replaces what Node sends messages with, such as `process._send`; its isolate is then replaced. Without the key, what it sends cannot pass
// for a message of Bullpen. The isolate needs no key for what it receives: a handler that forges such a message does so in its own isolate,
// and harms only attempts of its own isolate, for example a later one if a timer has forged it.
import type { FromIsolate, ToIsolate } from './messages.ts'

export interface EnvelopeToIsolate {
  readonly isolate: ToIsolate
}

export interface EnvelopeFromIsolate {
  readonly isolate: FromIsolate
  readonly key: string
}

/** Returns the message of Bullpen in what was received, which may be malformed. Returns undefined if it is somebody else's. */
export function messageIn(received: unknown): unknown {
  return isEnvelope(received) ? received.isolate : undefined
}

/** Returns undefined if it is somebody else's message. @throws Error if it looks like one of Bullpen and has another key. */
export function messageFromIsolate(received: unknown, key: string): FromIsolate | undefined {
  if (!isEnvelope(received)) return undefined
  if (received.key !== key) throw new Error('it does not have the key of the isolate')
  return received.isolate as FromIsolate
}

function isEnvelope(received: unknown): received is { readonly isolate: unknown; readonly key?: unknown } {
  return typeof received === 'object' && received !== null && 'isolate' in received
}
