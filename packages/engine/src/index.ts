// Exports what code that uses a worker needs: the middleware type, the broker port, and the pools' reports.

export type { Middleware } from './attempt/middleware.ts'
export type { DrainReport } from './pool/drain.ts'
export type { Broker, GiveBack, ListQuery, Page, QueueTokens, QueueTotals } from './ports/broker/broker.ts'
export type { Caller, Idempotency, Need, NewTask, Turn, UniqueKey } from './ports/broker/new-task.ts'
export type { EventSink } from './ports/event-sink.ts'
export type { PayloadCodec } from './ports/payload-codec.ts'
export type { PoolStatus, SlotStatus } from './ports/pool-status.ts'
export type {
  AttemptSpan,
  EnqueueEnd,
  EnqueueSpan,
  ProducerTracing,
  TracedAttempt,
  TracedEnqueue,
  Tracing,
} from './ports/tracing.ts'
