// Defines the port for telemetry.
import type { TaskEvent } from '@bullpen/contract'

/** Receives every event. A sink must not throw or block. */
export type EventSink = (event: TaskEvent) => void
