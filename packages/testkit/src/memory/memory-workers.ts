// Implements the memory broker's methods that create the consumers of workers, and those that let workers fail.
import type { TaskId } from '@bullpen/contract'
import type { Clock, WaitFacts } from '@bullpen/engine/internal'
import type { MemoryBroker } from './memory-broker-options.ts'
import { createMemoryConsumer, type MemoryConsumer, type MemoryConsumerSettings } from './memory-consumer.ts'
import type { MemoryStore } from './store/memory-store.ts'
import type { StoredTask } from './store/stored-task.ts'

/** What is known about the workers of a queue. */
export type QueueWorkers = Pick<WaitFacts, 'pools' | 'servedAt'>

export interface MemoryWorkersOptions extends Pick<MemoryConsumerSettings, 'outage' | 'inputOf'> {
  readonly clock: Clock
  readonly tasks: ReadonlyMap<TaskId, StoredTask>
  /** @throws BullpenError `queue_not_found`. */
  readonly storeOf: (queue: string) => MemoryStore
}

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
    consumer: ({ queue, concurrency, worker = 'memory', candidates, keyLimits, capacities }) => {
      return (run, pool) => {
        const settings = {
          store: storeOf(queue),
          outage,
          concurrency,
          worker,
          candidates,
          keyLimits,
          capacities,
          inputOf,
          onStopped: () => void servedAt.set(queue, clock.now()),
        }
        const consumer = createMemoryConsumer(settings, run, pool)
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
