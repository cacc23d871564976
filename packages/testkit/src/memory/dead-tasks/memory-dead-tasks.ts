// Implements the memory broker's methods for dead tasks.
import { randomBytes } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import { type Clock, editedEnvelope } from '@bullpen/engine/internal'
import type { MemoryStore } from '../store/memory-store.ts'
import type { StoredTask } from '../store/stored-task.ts'
import type { DeadChanges } from './dead-changes.ts'
import { countDead, matchingDead, searchDead } from './searches.ts'

export interface MemoryDeadTasksOptions {
  readonly clock: Clock
  /** Throws if the store is unreachable. */
  readonly check: () => void
  readonly tasks: ReadonlyMap<TaskId, StoredTask>
  /** @throws BullpenError `queue_not_found`. */
  readonly storeOf: (queue: string) => MemoryStore
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
  const { clock, check, tasks, storeOf, deadChanges, assertSize } = options
  return {
    async retry(id, options) {
      check()
      const task = tasks.get(id)
      if (task === undefined) return 'not_found'
      const { edit } = options
      const envelope = edit === undefined ? task.envelope : editedEnvelope(task.envelope, edit, task.codec)
      assertSize(Buffer.byteLength(JSON.stringify(envelope)))
      return storeOf(task.queue).retry(task, options, envelope)
    },

    async deleteDead(id) {
      check()
      const task = tasks.get(id)
      return task === undefined ? 'not_found' : storeOf(task.queue).deleteDead(task)
    },

    async searchDead(query) {
      check()
      return searchDead(storeOf(query.queue), query)
    },

    async countMatchingDead(filter) {
      check()
      return { matching: matchingDead(storeOf(filter.queue), filter).length, exact: true }
    },

    async changeDead(change) {
      check()
      const { queue } = change.filter
      const request = { ...change, id: createTaskId(queue, clock.now(), randomBytes(ID_RANDOM_BYTES)), at: clock.now() }
      return deadChanges.start(storeOf(queue), request)
    },

    async deadProgress(id) {
      check()
      return deadChanges.progressOf(id)
    },

    async stopDead(id, by) {
      check()
      return deadChanges.stop(id, by)
    },

    async listDeadRequests(queue, limit) {
      check()
      // Throws if the queue is unknown.
      storeOf(queue)
      return deadChanges.listed(queue, limit)
    },

    async countDead(queue, limit) {
      check()
      return countDead(storeOf(queue)).slice(0, limit)
    },
  }
}
