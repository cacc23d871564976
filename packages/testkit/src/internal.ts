// For Bullpen's own packages only. These exports may change in any version.

export { type MemorySchedules, type MemorySchedulesOptions, memorySchedules } from './memory/memory-schedules.ts'
export { realTime } from './real-time.ts'
export { testPool } from './test-pool.ts'
