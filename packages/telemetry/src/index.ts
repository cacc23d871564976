// The exports for users: the tables of metrics and log fields.
export { LOG_FIELDS, type LogField } from './log/log-fields.ts'
export { METRICS, type MetricName, type MetricRow, metricType, PROCESS_METRICS } from './metrics/metrics-table.ts'
export { RECORDED_METRICS, type RecordedMetric, type RecordedName } from './metrics/recorded-metrics.ts'
