// For Bullpen's own packages; may change with any version.
export { logEvents } from './log/event-log.ts'
export { createLog, type LogOptions } from './log/log.ts'
export { type AnsweredRequest, createTelemetry, type Telemetry, type WatchedPool } from './telemetry.ts'
