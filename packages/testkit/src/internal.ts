// For this repository's other packages: may change with any version.
export { testPool } from './test-pool.ts'
