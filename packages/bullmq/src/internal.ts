// For Bullpen's own packages. These exports may change in any version.

export { ENQUEUE_REFUSALS } from './broker/enqueueing.ts'
export { openSkewMonitor, type SkewMonitor } from './clock/clock-skew.ts'
export { decodeStack } from './codec.ts'
export { blockingConnection } from './connection.ts'
export { openConsumer } from './consumer.ts'
export { type BullmqExamination, type BullmqFinding, type ExaminedQueue, examineBullmq } from './examination/examine.ts'
export { recipients } from './fleet/commands.ts'
export { openFleet } from './fleet/fleet.ts'
export { type ConnectionWatch, createConnectionWatch } from './redis/connection-watch.ts'
export { isConnectionError } from './redis/outages/outage-reporter.ts'
