// For Bullpen's own packages only. These exports may change in any version.

export { type MemoryEventStream, memoryEventStream } from './memory/events/memory-event-stream.ts'
export { memoryGroups } from './memory/memory-groups.ts'
export { memoryRuns } from './memory/memory-runs.ts'
export { memorySchedules } from './memory/memory-schedules.ts'
export { realTime } from './real-time.ts'
export { realTimePool, testPool } from './test-pool.ts'
