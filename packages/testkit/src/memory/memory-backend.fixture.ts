// Opens the memory broker for the suites that run against every broker.
import type { OpenBackend } from '@bullpen/testing'
import { memoryBroker } from './memory-broker.ts'

export const openMemory: OpenBackend = async ({ queues, sizeLimit, codec, retention, onExpired, clock }) => {
  const broker = memoryBroker({ clock, queues, sizeLimit, codec, retention, onExpired, stallMs: 50, sweepMs: 100 })
  const [queue = ''] = queues
  return {
    broker,
    breakers: broker.breakers,
    consumer: (options) => broker.consumer({ queue, ...options }),
    limitKeys: async (limits, key) => broker.limitKeys(queue, limits, key),
    limitPermits: async (permits) => broker.limitPermits(queue, permits),
    limitDefinition: async (task, concurrency) => broker.limitDefinition(queue, task, concurrency),
    loseLock: async (id) => broker.loseLock(id),
    kill: async (worker) => broker.kill(worker),
    failConsumers: broker.failConsumers,
    outage: { begin: broker.fail, end: broker.recover },
    close: broker.close,
  }
}
