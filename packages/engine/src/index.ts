// What users of a worker may name: middleware, the broker port, and what pools report.

export type { Middleware } from './attempt/middleware.ts'
export type { PoolStatus } from './fleet/fleet.ts'
export type { DrainReport } from './pool/drain-report.ts'
export type { SlotStatus } from './pool/slot.ts'
export type { Broker, EventSink, ListQuery, NewTask, Page } from './ports/ports.ts'
