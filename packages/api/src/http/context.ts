// What every handler is given: the catalogue, the broker, and the world's time and chance.
import type { Catalogue, Log } from '@bullpen/contract'
import type { Broker, EventSink } from '@bullpen/engine'
import type { Fleet } from '@bullpen/engine/internal'

export interface ApiContext {
  readonly catalogue: Catalogue
  readonly broker: Broker
  readonly fleet: Fleet
  readonly emit: EventSink
  readonly log: Log
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly randomBytes: (size: number) => Uint8Array
  /** Aborts when the API shuts down: it is not ready any more, and whoever waits is answered with what is known. */
  readonly closing: AbortSignal
}
