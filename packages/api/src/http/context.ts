// Defines the dependencies that every handler receives, such as the catalogue, the broker and the fleet.
import type { BullmqBroker } from '@bullpen/bullmq'
import type { Catalogue, Log } from '@bullpen/contract'
import type { Broker, EventSink } from '@bullpen/engine'
import type { BlockedCallers, EnqueueRates, EventFeeds, Fleet } from '@bullpen/engine/internal'
import type { EventStreams } from './event-stream.ts'

/** What this process knows of Redis and of its own settings, for a diagnosis. */
export interface Platform
  extends Pick<BullmqBroker, 'servers' | 'leadership' | 'unreachableNodes' | 'head' | 'lostTasks' | 'recentEnds'> {
  readonly isDevelopment: boolean
  /** The percentage of Redis's memory at which the API stops accepting tasks. */
  readonly memoryWatermark: number
  /** How far the clock of this machine is ahead of Redis's, in ms. Undefined if it could not be measured. */
  clockSkewMs(): number | undefined
}

export interface ApiContext {
  readonly catalogue: Catalogue
  readonly broker: Broker
  readonly fleet: Fleet
  /** The events of the queues, which all readers share. */
  readonly feeds: EventFeeds
  readonly eventStreams: EventStreams
  /** The callers that wait for room in a queue. */
  readonly blocked: BlockedCallers
  /** Limits how fast each API key may enqueue tasks. */
  readonly rates: EnqueueRates
  /** The names of the API's keys, which commands may limit. */
  readonly apiKeyNames: readonly string[]
  readonly platform: Platform
  readonly emit: EventSink
  /** Reports how long a request took to store a new task in this queue. */
  readonly enqueueTimed: (queue: string, seconds: number) => void
  readonly log: Log
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly randomBytes: (size: number) => Uint8Array
  /** The maximum size of the body of a bulk request, in bytes. */
  readonly bulkBodyLimit: number
  /** How long idempotency keys are remembered in queues whose definition does not set this, in seconds. */
  readonly idempotencyLifeS: number
  /** Whether the API serves Bull Board, so that responses can link to a task's page there. */
  readonly hasBoard: boolean
  /** Aborts when the API starts to drain. Readiness is then turned off, and long polls end at once. */
  readonly closing: AbortSignal
}
