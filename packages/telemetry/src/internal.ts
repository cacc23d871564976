// These exports are for Bullpen's own packages and may change in any version.
export { summarizeAttempts } from './log/attempt-summaries.ts'
export { childLog } from './log/child-log.ts'
export { logEvents } from './log/event-log.ts'
export { FAILURE_LINES_PER_SECOND } from './log/failure-limit.ts'
export { createLog } from './log/log.ts'
export { createLogLevel, type LogLevelControl } from './log/log-level.ts'
export { createTelemetry, type Telemetry } from './telemetry.ts'
