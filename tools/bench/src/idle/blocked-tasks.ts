// The tasks of the benchmark `idle` that may not start: each of their concurrency keys has the limit 0.
import { openBroker } from '@bullpen/bullmq'
import { defineCatalogue, defineQueue, defineTask, type QueueOptions } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { createRandomPool } from '@bullpen/engine/node'
import { z } from 'zod'
import { untilReachable } from '../measuring/reachable.ts'

const KEYS = 1_000
const IN_FLIGHT = 64

const keyOf = (n: number): string => `tenant-${n % KEYS}`

/** Returns the options of a queue none of whose tasks with a key may start. */
export function blockedQueue(name: string): QueueOptions {
  const keys = Object.fromEntries(Array.from({ length: KEYS }, (_, n) => [keyOf(n), { concurrency: 0 }]))
  return { name, fairness: true, limits: { perConcurrencyKey: { keys } } }
}

/** Enqueues this many tasks that may not start. */
export async function enqueueBlocked(
  { redisUrl, namespace, queue }: { readonly redisUrl: string; readonly namespace: string; readonly queue: string },
  tasks: number,
): Promise<void> {
  const schemas = { input: z.object({}), output: z.object({}) }
  const definition = defineTask({ name: `idle.${queue}`, queue: defineQueue(blockedQueue(queue)), ...schemas })
  const { queues } = defineCatalogue(definition)
  const log = { debug() {}, info() {}, warn() {}, error: console.error }
  const broker = openBroker({ redisUrl, namespace, queues, sizeLimit: 65_536, leads: false, log })
  await untilReachable(broker)
  const random = createRandomPool()
  let next = 0
  const enqueueNext = async (): Promise<void> => {
    while (next < tasks) {
      const enqueuedAt = Date.now()
      const id = createTaskId(definition.queue, enqueuedAt, random(ID_RANDOM_BYTES))
      const call = { concurrencyKey: keyOf(next++) }
      await broker.enqueue(newTask(definition, {}, call, { id, enqueuedAt, caller: 'only', correlationId: undefined }))
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, enqueueNext))
  await broker.close()
}
