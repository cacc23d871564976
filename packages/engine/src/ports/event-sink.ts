// The port for telemetry.
import type { TaskEvent } from '@bullpen/contract'

/** Receives every event. Must not throw, and must return at once. */
export type EventSink = (event: TaskEvent) => void
