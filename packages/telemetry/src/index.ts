// Telemetry's public surface.

// Logs
export { logEvents } from './event-log.ts'
export { createLog, LOG_LEVELS, type LogLevel, type LogOptions } from './log.ts'
export { LOG_FIELDS, type LogField } from './log-fields.ts'
export { LOG_SETTINGS } from './log-settings.ts'
// Metrics
export { METRICS, type MetricName, type MetricRow, PROCESS_METRICS } from './metrics-table.ts'
export { type AnsweredRequest, createTelemetry, type Telemetry, type WatchedPool } from './telemetry.ts'
