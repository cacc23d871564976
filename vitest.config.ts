// Runs every test of the repository: files in parallel, one shared Redis server, the slowest ten printed at the end.
import { defineConfig } from 'vitest/config'

declare module 'vitest' {
  interface ProvidedContext {
    /** The run's Redis, shared by all files: a test takes a key prefix or a queue name of its own. */
    redisUrl: string
  }
}

export default defineConfig({
  test: {
    include: ['{packages,apps}/*/src/**/*.test.ts', 'scripts/**/*.test.mjs', 'k8s/**/*.test.ts', 'docs/**/*.test.ts'],
    globalSetup: ['scripts/test-redis.mjs'],
    reporters: ['default', './scripts/reporter.mjs'],
    passWithNoTests: false,
    allowOnly: false,
    testTimeout: 20_000,
    hookTimeout: 60_000,
    maxWorkers: 3,
  },
})
