// The fuzz of all scripts (./script-fuzz.model.test.ts) with more steps and seeds.
//
// SEED=7 runs one seed alone, SEEDS=20 runs the seeds from 1 to 20, and STEPS=100000 is how many steps each of them takes.
import { amount } from '@bullpen/testing'
import { it } from 'vitest'
import { fuzz } from './fuzz-seeds.fixture.ts'

const { SEED, SEEDS, STEPS } = process.env
const steps = Number(STEPS ?? amount({ small: 2_500, full: 100_000 }))

/** In ms. Twenty seeds with 100,000 steps each take about two hours. */
const TIMEOUT_MS = 86_400_000

function seedsToRun(): readonly number[] {
  if (SEED !== undefined) return [Number(SEED)]
  return Array.from({ length: Number(SEEDS ?? 3) }, (_, i) => i + 1)
}

it('every task is in one place and counted once after many random operations', { timeout: TIMEOUT_MS }, async () => {
  await fuzz({ seeds: seedsToRun(), steps })
})
