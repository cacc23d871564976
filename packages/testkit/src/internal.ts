// For Bullpen's own packages; may change with any version.
export { realTime } from './real-time.ts'
export { testPool } from './test-pool.ts'
