// Opens the queues to which this process forwards tasks. A target need not be in the catalogue of the process that forwards: the
// leader forwards for all queues of its namespace.
import type { Queue } from 'bullmq'
import { openQueue, type QueueTableOptions } from '../broker/queue-handles.ts'
import { type AddForwarded, forwardedJobAdder } from '../internals/composition/add-job.ts'

export interface TargetQueues {
  /** Returns the function that adds tasks to a queue. Opens the queue at the first call, without waiting for Redis. */
  of(queue: string): AddForwarded
  close(): Promise<void>
}

export function openTargetQueues(options: Pick<QueueTableOptions, 'redis' | 'namespace' | 'now'>): TargetQueues {
  const opened = new Map<string, { readonly queue: Queue; readonly add: AddForwarded }>()
  return {
    of(name) {
      const known = opened.get(name)
      if (known !== undefined) return known.add
      const queue = openQueue(name, options)
      const add = forwardedJobAdder(options.redis, queue.getBackend())
      opened.set(name, { queue, add })
      return add
    },
    async close() {
      await Promise.allSettled([...opened.values()].map(({ queue }) => queue.close()))
    },
  }
}
