// For Bullpen's own packages only. These exports may change in any version.

export { type MemoryEventStream, memoryEventStream } from './memory/events/memory-event-stream.ts'
export { type MemoryGroups, type MemoryGroupsOptions, memoryGroups } from './memory/memory-groups.ts'
export { type MemoryRuns, type MemoryRunsOptions, memoryRuns } from './memory/memory-runs.ts'
export { type MemorySchedules, type MemorySchedulesOptions, memorySchedules } from './memory/memory-schedules.ts'
export { realTime } from './real-time.ts'
export { realTimePool, testPool } from './test-pool.ts'
