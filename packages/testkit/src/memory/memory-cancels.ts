// Implements the memory broker's methods that cancel tasks, one by one or by a filter.
import { randomBytes } from 'node:crypto'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import type { Broker } from '@bullpen/engine'
import type { CancelRule } from '@bullpen/engine/internal'
import type { MemoryParts } from './memory-parts.ts'

export function memoryCancels({
  clock,
  tasks,
  storeOf,
}: MemoryParts): Pick<Broker, 'cancel' | 'cancelMany' | 'cancelProgress'> {
  const cancels = new Map<string, { readonly rule: CancelRule; doneAt: number | undefined }>()
  return {
    async cancel(id, options) {
      const task = tasks.get(id)
      return task === undefined ? 'not_found' : storeOf(task.queue).cancel(task, options)
    },

    async cancelMany({ by = 'memory', ...filter }) {
      const now = clock.now()
      const id = createTaskId(filter.queue, now, randomBytes(ID_RANDOM_BYTES))
      const rule = { ...filter, id, by, at: now }
      storeOf(filter.queue).cancelWhere(rule)
      cancels.set(id, { rule, doneAt: undefined })
      return rule
    },

    async cancelProgress(id) {
      const found = cancels.get(id)
      if (found === undefined) return undefined
      const { ended, isDone } = storeOf(found.rule.queue).progressOf(found.rule)
      if (isDone) found.doneAt ??= clock.now()
      return { rule: found.rule, ended, doneAt: found.doneAt }
    },
  }
}
