// Implements the memory broker's methods that cancel tasks, one by one or by a filter.
import { randomBytes } from 'node:crypto'
import type { TaskId } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import type { CancelRule, Clock } from '@bullpen/engine/internal'
import type { MemoryStore } from './store/memory-store.ts'
import type { StoredTask } from './store/stored-task.ts'

export interface MemoryCancelsOptions {
  readonly clock: Clock
  /** Throws if the store is unreachable. */
  readonly check: () => void
  readonly tasks: ReadonlyMap<TaskId, StoredTask>
  /** @throws BullpenError `queue_not_found`. */
  readonly storeOf: (queue: string) => MemoryStore
}

export function memoryCancels(options: MemoryCancelsOptions): Pick<Broker, 'cancel' | 'cancelMany' | 'cancelProgress'> {
  const { clock, check, tasks, storeOf } = options
  const cancels = new Map<string, { readonly rule: CancelRule; doneAt: number | undefined }>()
  return {
    async cancel(id, options) {
      check()
      const task = tasks.get(id)
      return task === undefined ? 'not_found' : storeOf(task.queue).cancel(task, options)
    },

    async cancelMany({ by = 'memory', ...filter }) {
      check()
      const now = clock.now()
      const id = createTaskId(filter.queue, now, randomBytes(ID_RANDOM_BYTES))
      const rule = { ...filter, id, by, at: now }
      storeOf(filter.queue).cancelWhere(rule)
      cancels.set(id, { rule, doneAt: undefined })
      return rule
    },

    async cancelProgress(id) {
      check()
      const found = cancels.get(id)
      if (found === undefined) return undefined
      const { ended, isDone } = storeOf(found.rule.queue).progressOf(found.rule)
      if (isDone) found.doneAt ??= clock.now()
      return { rule: found.rule, ended, doneAt: found.doneAt }
    },
  }
}
