// Runs random pipelines on worker processes that die, freeze and are shut down, and compares the runs with a model in memory.
import { amount } from '@bullpen/testing'
import fc from 'fast-check'
import { inject, it } from 'vitest'
import { program } from './program.fixture.ts'
import { runProgram } from './run-program.fixture.ts'

/** The seed of a failed program, which runs that program alone. */
const ONE = process.env['SEED']
/** How many fleets run at once. */
const AT_ONCE = 3
/** The timeout in ms, except in a full run, which has a longer timeout. */
const TIMEOUT_MS = 600_000
const count = amount({ small: 2, full: 100 })

it(
  `the runs of random pipelines return what a model in memory returns, and leave nothing behind, in ${count} random fleets`,
  async () => {
    const left = ONE === undefined ? Array.from({ length: count }, (_, i) => i + 1) : [Number(ONE)]
    const failures: Error[] = []
    const runSeeds = async (): Promise<void> => {
      for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
        const property = fc.asyncProperty(program, (each) => runProgram(each, inject('redisUrl')))
        try {
          await fc.assert(property, { seed, numRuns: 1, endOnFailure: true })
        } catch (cause) {
          const message = `seed ${seed} failed; set SEED=${seed} in the environment to run it alone`
          failures.push(new Error(message, { cause }))
          left.length = 0
        }
      }
    }
    await Promise.all(Array.from({ length: AT_ONCE }, runSeeds))
    // Thrown only when all fleets are closed.
    if (failures.length > 0) throw failures[0]
  },
  inject('scale') === 'full' ? undefined : TIMEOUT_MS,
)
