// Runs model-based tests: random programs of tasks, pools and faults on a broker, which must all obey the same rules.
import { systemClock } from '@bullpen/engine/node'
import { fakeClock } from '@bullpen/testkit'
import fc from 'fast-check'
import { it } from 'vitest'
import type { OpenBackend } from '../conformance/backend.ts'
import { amount, type Scale } from '../scale.ts'
import { program } from './program.ts'
import { runProgram, type Time } from './run-program.ts'

interface ModelOptions {
  /** `fake` is for a broker that runs on the test's clock. */
  readonly time: 'fake' | 'real'
  readonly seeds: Readonly<Record<Scale, number>>
  /** How many programs run at once. */
  readonly atOnce: number
}

/** The seed of a failed program, which runs that program alone. */
const ONE = process.env['SEED']

/**
 * Defines the model-based tests for a broker. In real time, a failing program is not shrunk, because another run would differ.
 */
export function brokerModel(name: string, open: OpenBackend, { time, seeds, atOnce }: ModelOptions): void {
  const count = amount(seeds)
  it(`${name} neither loses nor duplicates results and follows the state tables in ${count} random programs`, async () => {
    const left = ONE === undefined ? Array.from({ length: count }, (_, i) => i + 1) : [Number(ONE)]
    const runSeeds = async (): Promise<void> => {
      for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
        const property = fc.asyncProperty(program, (each) => runProgram(each, open, time === 'fake' ? fake() : real()))
        try {
          await fc.assert(property, { seed, numRuns: 1, endOnFailure: time === 'real' })
        } catch (cause) {
          left.length = 0
          throw new Error(`seed ${seed} failed; set SEED=${seed} in the environment to run it alone`, { cause })
        }
      }
    }
    // After a failure, the other programs end first, because the test would otherwise be reported to leave them open.
    const runs = await Promise.allSettled(Array.from({ length: atOnce }, runSeeds))
    for (const run of runs) if (run.status === 'rejected') throw run.reason
  })
}

/** Longer than any program takes, in ms. */
const LONG_ENOUGH_MS = { fake: 120_000, real: 120_000 }

function fake(): Time {
  const clock = fakeClock()
  return {
    clock,
    inexactMs: 0,
    pass: (ms) => clock.advance(ms),
    async until(isTrue, what) {
      const startedAt = clock.monotonic()
      await clock.advance(0)
      while (!(await isTrue())) {
        const waitedMs = clock.monotonic() - startedAt
        if (waitedMs > LONG_ENOUGH_MS.fake) throw new Error(`not within the time allowed: ${what}`)
        // The steps grow because the exact time matters less the longer the wait takes.
        await clock.advance(Math.max(1, clock.next() ?? 1_000, waitedMs / 10))
      }
    },
  }
}

function real(): Time {
  const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  return {
    clock: systemClock,
    inexactMs: 5,
    pass,
    async until(isTrue, what) {
      const until = performance.now() + LONG_ENOUGH_MS.real
      while (!(await isTrue())) {
        if (performance.now() > until) throw new Error(`not within the time allowed: ${what}`)
        await pass(5)
      }
    },
  }
}
