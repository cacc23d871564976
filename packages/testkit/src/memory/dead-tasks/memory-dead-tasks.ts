// Implements the memory broker's methods for dead tasks.
import { randomBytes } from 'node:crypto'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import { editedEnvelope } from '@bullpen/engine/internal'
import type { MemoryParts } from '../memory-parts.ts'
import type { DeadChanges } from './dead-changes.ts'
import { countDead, matchingDead, searchDead } from './searches.ts'

export interface MemoryDeadTasksOptions extends MemoryParts {
  readonly deadChanges: DeadChanges
  /** Checks the size of a task's stored data, in bytes. @throws BullpenError `payload_too_large`. */
  readonly assertSize: (dataBytes: number) => void
}

type DeadTaskMethods = Pick<
  Broker,
  | 'retry'
  | 'deleteDead'
  | 'searchDead'
  | 'countMatchingDead'
  | 'changeDead'
  | 'deadProgress'
  | 'stopDead'
  | 'listDeadRequests'
  | 'countDead'
>

export function memoryDeadTasks(options: MemoryDeadTasksOptions): DeadTaskMethods {
  const { clock, tasks, storeOf, deadChanges, assertSize } = options
  return {
    async retry(id, options) {
      const task = tasks.get(id)
      if (task === undefined) return 'not_found'
      const { edit } = options
      const envelope = edit === undefined ? task.envelope : editedEnvelope(task.envelope, edit, task.codec)
      assertSize(Buffer.byteLength(JSON.stringify(envelope)))
      return storeOf(task.queue).retry(task, options, envelope)
    },

    async deleteDead(id) {
      const task = tasks.get(id)
      return task === undefined ? 'not_found' : storeOf(task.queue).deleteDead(task)
    },

    searchDead: async (query) => searchDead(storeOf(query.queue), query),

    async countMatchingDead(filter) {
      return { matching: matchingDead(storeOf(filter.queue), filter).length, exact: true }
    },

    async changeDead(change) {
      const { queue } = change.filter
      const request = { ...change, id: createTaskId(queue, clock.now(), randomBytes(ID_RANDOM_BYTES)), at: clock.now() }
      return deadChanges.start(storeOf(queue), request)
    },

    deadProgress: async (id) => deadChanges.progressOf(id),

    stopDead: async (id, by) => deadChanges.stop(id, by),

    async listDeadRequests(queue, limit) {
      // Throws if the queue is unknown.
      storeOf(queue)
      return deadChanges.listed(queue, limit)
    },

    countDead: async (queue, limit) => countDead(storeOf(queue)).slice(0, limit),
  }
}
