// The work of the benchmark `pipeline-fleet`, as functions and as tasks: items that compute for half of their time and wait for
// the other half.
import {
  defineCatalogue,
  defineHandler,
  definePipeline,
  defineSource,
  defineSourceHandler,
  defineTask,
} from '@bullpen/contract'
import { z } from 'zod'
import { spin } from '../measuring/spin.ts'

/** How many items the stage works on at a time, in one process and across the fleet. */
export const CONCURRENCY = 20

const itemSchema = z.object({ rounds: z.int(), waitMs: z.number() })
const loadSchema = z.object({ items: z.int(), rounds: z.int(), waitMs: z.number() })

/** What one item does: `rounds` of computing, and then a wait. */
export type Item = z.infer<typeof itemSchema>
/** The input of a run. The mean of all waits is `waitMs`. */
export type Load = z.infer<typeof loadSchema>

/** The shortest wait of a timer, in ms. */
const SHORTEST_MS = 1

/** If an item should wait for less than a timer can, only some of the items wait, so that the mean is right. */
export function* itemsOf({ items, rounds, waitMs }: Load): Generator<Item> {
  let owedMs = 0
  for (let n = 0; n < items; n++) {
    owedMs += waitMs
    const waits = owedMs >= SHORTEST_MS
    yield { rounds, waitMs: waits ? owedMs : 0 }
    if (waits) owedMs = 0
  }
}

export async function work({ rounds, waitMs }: Item): Promise<number> {
  const result = spin(rounds)
  if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs))
  return result
}

export const functions = definePipeline('bench').source(itemsOf).map(work, { concurrency: CONCURRENCY })

const source = defineSource({ name: 'bench.items', queue: 'bench', input: loadSchema, item: itemSchema, events: false })
const stage = defineTask({ name: 'bench.work', queue: 'bench', input: itemSchema, output: z.number(), events: false })

export const tasks = definePipeline('bench.tasks').source(source).map(stage, { concurrency: CONCURRENCY })
export const catalogue = defineCatalogue(source, stage, tasks)
export const handlers = {
  'bench.items': defineSourceHandler(source, import.meta.url, itemsOf),
  'bench.work': defineHandler(stage, import.meta.url, ({ input }) => work(input)),
}
