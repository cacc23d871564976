// The tasks of the benchmark `turns`.
import { defineCatalogue, defineQueue, defineTask } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { NewTask } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { createRandomPool } from '@bullpen/engine/node'
import { z } from 'zod'

/** Takes 100 bytes as JSON. */
const INPUT = { text: 'x'.repeat(89) }

const schemas = { input: z.object({ text: z.string() }), output: z.void() }

/** The concurrency keys of the queue's tasks take turns. A task without a key has no turn. */
export const turnTask = defineTask({
  name: 'bench.turns',
  queue: defineQueue({ name: 'bench-turns', fairness: true }),
  kind: 'short',
  ...schemas,
})
/** Each key also has a limit, which a key with its turn among many others never reaches. */
const limitTask = defineTask({
  name: 'bench.limits',
  queue: defineQueue({ name: 'bench-limits', fairness: true, limits: { perConcurrencyKey: { concurrency: 3 } } }),
  kind: 'short',
  ...schemas,
})
/** Each key also has a rate, which the benchmark never reaches. */
const rateTask = defineTask({
  name: 'bench.rates',
  queue: defineQueue({
    name: 'bench-rates',
    fairness: true,
    limits: { perConcurrencyKey: { concurrency: 3, rate: '10000/1m', burst: 10_000 } },
  }),
  kind: 'short',
  ...schemas,
})
/** The same task in a queue without turns. Its names are as long, because Redis's memory depends on that. */
export const plainTask = defineTask({ name: 'bench.plain', queue: 'bench-plain', kind: 'short', ...schemas })

export const catalogue = defineCatalogue(turnTask, limitTask, rateTask, plainTask)

/** The definitions whose costs are compared with those of tasks without a key, by what their keys do. */
export const TURNS = { 'take turns': turnTask, 'have limits': limitTask, 'have limits and rates': rateTask } as const
export type Turns = keyof typeof TURNS

const random = createRandomPool()

/** Creates the n-th task. `keys` is the number of concurrency keys, whose tasks follow each other in turn, or 0. */
export function benchTask(definition: (typeof TURNS)[Turns] | typeof plainTask, n: number, keys: number): NewTask {
  const enqueuedAt = Date.now()
  const id = createTaskId(definition.queue, enqueuedAt, random(ID_RANDOM_BYTES))
  const call = keys === 0 ? {} : { concurrencyKey: `tenant-${n % keys}` }
  return newTask(definition, INPUT, call, { id, enqueuedAt, caller: 'only', correlationId: undefined })
}
