// These exports are for Bullpen's own packages and may change in any version.
export { type AttemptSummaries, summarizeAttempts } from './log/attempt-summaries.ts'
export { childLog } from './log/child-log.ts'
export { logEvents } from './log/event-log.ts'
export { createLog, type LogOptions } from './log/log.ts'
export { createLogLevel, type LogLevelControl } from './log/log-level.ts'
export type { AnsweredRequest } from './metrics/http-metrics.ts'
export { createTelemetry, type Telemetry, type WatchedPool } from './telemetry.ts'
