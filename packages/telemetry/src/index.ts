// Telemetry's public surface.

// Logs
export { logEvents } from './log/event-log.ts'
export { createLog, type LogOptions } from './log/log.ts'
export { LOG_FIELDS, type LogField } from './log/log-fields.ts'
// Metrics
export { METRICS, type MetricName, type MetricRow, PROCESS_METRICS } from './metrics/metrics-table.ts'
export { type AnsweredRequest, createTelemetry, type Telemetry, type WatchedPool } from './telemetry.ts'
