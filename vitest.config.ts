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

/** In ms. Ends a test that hangs; it is no limit on speed, because beside other load a test takes many times as long. */
const TIMEOUT: Readonly<Record<Scale, number>> = { small: 5 * 60_000, full: 15 * 60_000 }

/** In ms. Longer than any socket or thread takes, beside other load too. */
const CLOSED_WITHIN_MS = 120_000

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
    testTimeout: TIMEOUT[scaleOf(mode)],
    hookTimeout: TIMEOUT[scaleOf(mode)],
    // A condition is met sooner or later on a busy machine. The default of 1 s would be a limit on speed.
    expect: { poll: { timeout: 60_000, interval: 10 } },
    // The files of a worker share its process and the modules in it, because to start a process takes longer than most files. A
    // file that does not restore what it changes for the others fails, but hooks must not be registered by an imported module.
    isolate: false,
    // The longest files mostly wait for time to pass: with four of them on two processors, a tenth of the processor time was idle.
    maxWorkers: 5,
  },
}))
