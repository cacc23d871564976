// Runs every test of the repository: files in parallel, one shared Redis server, the slowest ten printed at the end.
import type { Scale } from '@bullpen/testing'
import { defineConfig } from 'vitest/config'

declare module 'vitest' {
  interface ProvidedContext {
    /** The run's Redis, shared by all files: a test takes a key prefix or a queue name of its own. */
    redisUrl: string
  }
}

/** A full run's tests may take this long, in ms: it is there to end what hangs, and not to judge. */
const FULL_TIMEOUT = 15 * 60_000

const scaleOf = (mode: string): Scale => (mode === 'full' ? 'full' : 'small')

export default defineConfig(({ mode }) => ({
  test: {
    include: [
      '{packages,apps,tools}/*/src/**/*.test.ts',
      'scripts/**/*.test.mjs',
      'k8s/**/*.test.ts',
      'docs/**/*.test.ts',
    ],
    globalSetup: ['scripts/testing/global-setup.mjs'],
    reporters: ['default', './scripts/testing/reporter.mjs'],
    passWithNoTests: false,
    allowOnly: false,
    provide: { scale: scaleOf(mode) },
    testTimeout: mode === 'full' ? FULL_TIMEOUT : 20_000,
    hookTimeout: mode === 'full' ? FULL_TIMEOUT : 60_000,
    maxWorkers: 3,
  },
}))
