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
/** The same task in a queue without turns. Its names are as long, because Redis's memory depends on that. */
export const plainTask = defineTask({ name: 'bench.plain', queue: 'bench-plain', kind: 'short', ...schemas })

export const catalogue = defineCatalogue(turnTask, plainTask)

const random = createRandomPool()

/** Creates the n-th task. `keys` is the number of concurrency keys, whose tasks follow each other in turn, or 0. */
export function benchTask(definition: typeof turnTask | typeof plainTask, n: number, keys: number): NewTask {
  const enqueuedAt = Date.now()
  const id = createTaskId(definition.queue, enqueuedAt, random(ID_RANDOM_BYTES))
  const call = keys === 0 ? {} : { concurrencyKey: `tenant-${n % keys}` }
  return newTask(definition, INPUT, call, { id, enqueuedAt, caller: 'only', correlationId: undefined })
}
