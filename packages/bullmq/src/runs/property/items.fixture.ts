// The items of random pipelines, and what a stage makes of an item or a batch.
import { MAX_PASSED_BYTES } from '@bullpen/engine/internal'
import type { Fault, PlannedRun } from './program.fixture.ts'

export interface Item {
  /** The position of the run among those of the program. */
  readonly run: number
  /** The numbers that the source gave the item, or the items of a batch. */
  readonly ats: readonly number[]
  /** The value of a batch is the sum of those of its items, also after further stages. */
  readonly value: number
  /** How many stages the item has passed. */
  readonly passed: number
  /** Makes the item large until it is put into a batch. Results are without it. */
  readonly padding: string
}

const LARGE = 'x'.repeat(MAX_PASSED_BYTES)
/** Values are smaller. */
export const MODULUS = 1_000_003

/** What the source yields at a position. */
export function yieldedAt({ largeEvery }: Pick<PlannedRun, 'largeEvery'>, run: number, at: number): Item {
  const isLarge = largeEvery !== undefined && at % largeEvery === 0
  return { run, ats: [at], value: 7 * at, passed: 0, padding: isLarge ? LARGE : '' }
}

/** Joins the items of a batch. Items that are not in a batch stay as they are. */
export function joined(given: Item | readonly Item[]): Item {
  if (!isBatch(given)) return given
  const [first] = given
  if (first === undefined) throw new Error('a batch is empty')
  const value = given.reduce((sum, item) => sum + item.value, 0) % MODULUS
  return { ...first, ats: given.flatMap(({ ats }) => ats), value, padding: '' }
}

function isBatch(given: Item | readonly Item[]): given is readonly Item[] {
  return Array.isArray(given)
}

/** What a stage makes of an item. */
export function transform({ value, passed, ...item }: Item): Item {
  return { ...item, value: (31 * value + item.ats.length * passed + item.padding.length) % MODULUS, passed: passed + 1 }
}

/** What goes wrong with an item, or with any item of a batch. */
export function faultOf({ faults }: Pick<PlannedRun, 'faults'>, stage: number, { ats }: Item): Fault | undefined {
  const planned = ats.flatMap((at) => faults.get(`${stage}.${at}`) ?? [])
  return planned.find((fault) => fault !== 'once') ?? planned[0]
}
