// Model-based tests: random lives of tasks, pools and processes on a broker, and the rules that hold for all of them.

import { systemClock } from '@bullpen/engine/node'
import { fakeClock } from '@bullpen/testkit'
import fc from 'fast-check'
import { inject, it } from 'vitest'
import type { OpenBackend } from '../conformance/backend.ts'
import { amount, type Scale } from '../scale.ts'
import { perform, type Time } from './perform.ts'
import { program } from './program.ts'

interface ModelOptions {
  /** `fake`: for a broker that lives by a clock. */
  readonly time: 'fake' | 'real'
  readonly seeds: Readonly<Record<Scale, number>>
  /** How many seeds live beside each other. */
  readonly atOnce: number
}

/** A seed that has failed, to be run alone. */
const ONE = process.env['SEED']

/** Unless it is a full run, which has longer. In ms. */
const TIMEOUT_MS = 120_000

/** In a real broker's time, a failure is told as it is: another run would be another one. */
export function brokerModel(name: string, open: OpenBackend, { time, seeds, atOnce }: ModelOptions): void {
  const count = amount(seeds)
  it(
    `${name}: nothing is lost, doubled or against the tables in ${count} random lives`,
    async () => {
      const left = ONE === undefined ? Array.from({ length: count }, (_, i) => i + 1) : [Number(ONE)]
      const live = async (): Promise<void> => {
        for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
          const property = fc.asyncProperty(program, (each) => perform(each, open, time === 'fake' ? fake() : real()))
          try {
            await fc.assert(property, { seed, numRuns: 1, endOnFailure: time === 'real' })
          } catch (cause) {
            throw new Error(`seed ${seed} fails; SEED=${seed} in the environment runs it alone`, { cause })
          }
        }
      }
      await Promise.all(Array.from({ length: atOnce }, live))
    },
    inject('scale') === 'full' ? undefined : TIMEOUT_MS,
  )
}

/** Longer than any life of a program, in ms. */
const LONG_ENOUGH_MS = { fake: 120_000, real: 15_000 }

function fake(): Time {
  const clock = fakeClock()
  return {
    clock,
    pass: (ms) => clock.advance(ms),
    async until(isTrue, what) {
      const began = clock.monotonic()
      await clock.advance(0)
      while (!(await isTrue())) {
        const waitedMs = clock.monotonic() - began
        if (waitedMs > LONG_ENOUGH_MS.fake) throw new Error(`never: ${what}`)
        // The longer it has taken, the less it matters when it is looked at.
        await clock.advance(Math.max(1, clock.next() ?? 1_000, waitedMs / 10))
      }
    },
  }
}

function real(): Time {
  const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))
  return {
    clock: systemClock,
    pass,
    async until(isTrue, what) {
      const until = performance.now() + LONG_ENOUGH_MS.real
      while (!(await isTrue())) {
        if (performance.now() > until) throw new Error(`never: ${what}`)
        await pass(5)
      }
    },
  }
}
