// For Bullpen's own packages only. These exports may change in any version.
export { realTime } from './real-time.ts'
export { testPool } from './test-pool.ts'
