// Defines the port for telemetry.
import type { TaskEvent } from '@bullpen/contract'

/** Receives every event. It must not throw and must return without blocking. */
export type EventSink = (event: TaskEvent) => void
