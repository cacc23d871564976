// Defines the work of the benchmark `runs`, which is the same for both sides: three stages, each of which adds one to every number.
import { defineSource, defineTask } from '@bullpen/contract'
import { z } from 'zod'

/** What a process of the benchmark gets as its argument, as JSON. */
export interface RunLoad {
  readonly side: RunSide
  readonly redisUrl: string
  readonly namespace: string
  readonly items: number
  /** How many items one task gets. */
  readonly size: number
  /** How many tasks of a stage may exist at a time. A flow has no such limit. */
  readonly bound: number
}

export const RUN_SIDES = ['pipeline', 'flow'] as const
export type RunSide = (typeof RUN_SIDES)[number]

/** What a process reports when all items have passed through all stages. */
export interface RunDone {
  readonly seconds: number
  /** The most memory that the process has used, in MiB. */
  readonly rssMiB: number
}

/** The queues of the stages, in order. */
export const QUEUES = ['bench-one', 'bench-two', 'bench-three'] as const

/** How many tasks of each queue run at a time. */
export const SLOTS = 20

const kind = 'short'
const number = z.int()
const numbers = z.array(number)

export const source = defineSource({
  name: 'bench.numbers',
  queue: 'bench-source',
  input: z.object({ count: z.int() }),
  item: number,
})

const one = { kind, input: number, output: number } as const
const many = { kind, input: numbers, output: numbers } as const
const [first, second, third] = QUEUES

/** The stages for single items. Each stage has a queue of its own. */
export const single = [
  defineTask({ name: 'bench.first', queue: first, ...one }),
  defineTask({ name: 'bench.second', queue: second, ...one }),
  defineTask({ name: 'bench.third', queue: third, ...one }),
] as const

/** The same stages for batches. */
export const batch = [
  defineTask({ name: 'bench.first-batch', queue: first, ...many }),
  defineTask({ name: 'bench.second-batch', queue: second, ...many }),
  defineTask({ name: 'bench.third-batch', queue: third, ...many }),
] as const

export function addOne(n: number): number {
  return n + 1
}

export function sumOf(added: readonly number[]): number {
  return added.reduce((sum, n) => sum + n, 0)
}

/** What the sum of all results has to be. */
export function expectedSum(items: number): number {
  return (items * (items - 1)) / 2 + QUEUES.length * items
}
