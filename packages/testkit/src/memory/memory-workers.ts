// Implements the memory broker's methods that create the consumers of workers, and those that let workers fail.
import type { WaitFacts } from '@bullpen/engine/internal'
import type { MemoryBroker } from './memory-broker-options.ts'
import { createMemoryConsumer, type MemoryConsumer, type MemoryConsumerSettings } from './memory-consumer.ts'
import type { MemoryParts } from './memory-parts.ts'

/** What is known about the workers of a queue. */
export type QueueWorkers = Pick<WaitFacts, 'pools' | 'servedAt'>

type MemoryWorkersOptions = MemoryParts & Pick<MemoryConsumerSettings, 'outage' | 'inputOf'>

export function memoryWorkers(options: MemoryWorkersOptions): Pick<
  MemoryBroker,
  'consumer' | 'failConsumers' | 'loseLock' | 'kill'
> & {
  readonly workersOf: (queue: string) => QueueWorkers
} {
  const { clock, outage, inputOf, tasks, storeOf } = options
  const consumers: { readonly worker: string; readonly queue: string; readonly consumer: MemoryConsumer }[] = []
  const servedAt = new Map<string, number>()
  return {
    consumer: ({ queue, worker = 'memory', ...settings }) => {
      const onStopped = (): void => void servedAt.set(queue, clock.now())
      return (run, pool) => {
        const store = storeOf(queue)
        const consumer = createMemoryConsumer({ ...settings, store, outage, worker, inputOf, onStopped }, run, pool)
        consumers.push({ worker, queue, consumer })
        return consumer
      }
    },

    workersOf: (queue) => ({
      pools: consumers.filter((each) => each.queue === queue).flatMap(({ consumer }) => consumer.pool() ?? []),
      servedAt: servedAt.get(queue),
    }),

    failConsumers() {
      for (const { consumer } of consumers) consumer.fail()
    },

    loseLock(id) {
      const task = tasks.get(id)
      const owner = task?.owner
      if (task === undefined || owner === undefined) return
      storeOf(task.queue).orphan(task, owner, true)
      owner.lockLost()
    },

    kill(name) {
      for (const { consumer } of consumers.filter(({ worker }) => worker === name)) consumer.kill()
    },
  }
}
