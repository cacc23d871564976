// Adds tasks to the queues to which this process forwards. A target need not be in the catalogue of the process that forwards: the
// leader forwards for all queues of its namespace.
import { queueKeys } from '../keys.ts'
import type { Commander } from '../scripts/script.ts'
import { type AddForwarded, forwardedTaskAdder } from '../store/add.ts'

export interface TargetQueues {
  /** Returns the function that adds tasks to a queue. */
  of(queue: string): AddForwarded
}

export function createTargetQueues(redis: Commander, namespace: string): TargetQueues {
  const known = new Map<string, AddForwarded>()
  return {
    of(name) {
      const add = known.get(name) ?? forwardedTaskAdder(redis, queueKeys(namespace, name).base)
      known.set(name, add)
      return add
    },
  }
}
