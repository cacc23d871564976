// The memory broker, in real time, for the suites that run against every broker.
import { clockFrom } from '@bullpen/engine'
import type { OpenBackend } from './internal/index.ts'
import { memoryBroker } from './memory-broker.ts'

export const openMemory: OpenBackend = async ({ queues, sizeLimit, onExpired }) => {
  const broker = memoryBroker({ clock, queues, sizeLimit, onExpired, stallMs: 50, sweepMs: 100 })
  const [queue = ''] = queues
  return {
    broker,
    feed: (options) => broker.feed({ queue, ...options }),
    loseLock: async (id) => broker.loseLock(id),
    kill: broker.kill,
    close: broker.close,
  }
}

const clock = clockFrom({
  now: Date.now,
  monotonic: () => performance.now(),
  setTimeout,
  clearTimeout: (timer) => clearTimeout(timer as NodeJS.Timeout),
})
