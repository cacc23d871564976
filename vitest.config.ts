// Runs the tests of the whole repository: files in parallel, on one shared Redis.
import type { Scale } from '@bullpen/testing'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './scripts/testing/longest-first.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** The Redis of this run. All files share it: every test uses its own key prefix or queue name. */
    redisUrl: string
  }
}

/** In ms. Ends a test that hangs; it is no limit on speed. */
const FULL_TIMEOUT = 15 * 60_000

/** Longer than any socket or thread takes. */
const CLOSED_WITHIN_MS = 30_000

const scaleOf = (mode: string): Scale => (mode === 'full' ? 'full' : 'small')

export default defineConfig(({ mode }) => ({
  test: {
    include: [
      '{packages,apps,tools}/*/src/**/*.test.ts',
      'scripts/**/*.test.mjs',
      'k8s/**/*.test.ts',
      'docs/{,how-to/}*.test.ts',
    ],
    globalSetup: ['scripts/testing/global-setup.mjs'],
    setupFiles: ['tools/testing/src/leaks/setup.ts', 'tools/testing/src/random-cases.ts'],
    reporters: ['default', './scripts/testing/reporter.mjs'],
    sequence: { sequencer: LongestFirst },
    passWithNoTests: false,
    allowOnly: false,
    provide: { scale: scaleOf(mode), closedWithinMs: CLOSED_WITHIN_MS },
    testTimeout: mode === 'full' ? FULL_TIMEOUT : 60_000,
    hookTimeout: mode === 'full' ? FULL_TIMEOUT : 120_000,
    // A condition is met sooner or later on a busy machine. The default of 1 s would be a limit on speed.
    expect: { poll: { timeout: 30_000, interval: 10 } },
    // The files of a worker share its process and the modules in it, because to start a process takes longer than most files. A
    // file that does not restore what it changes for the others fails, but hooks must not be registered by an imported module.
    isolate: false,
    // The longest files mostly wait for time to pass: with four of them on two processors, a tenth of the processor time was idle.
    maxWorkers: 5,
  },
}))
