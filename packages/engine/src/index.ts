// For code that uses a worker: the middleware type, the broker port, and what pools report.

export type { Middleware } from './attempt/middleware.ts'
export type { DrainReport } from './pool/drain.ts'
export type { Broker, ListQuery, NewTask, Page, QueueTotals } from './ports/broker.ts'
export type { EventSink } from './ports/event-sink.ts'
export type { PayloadCodec } from './ports/payload-codec.ts'
export type { PoolStatus, SlotStatus } from './ports/pool-status.ts'
