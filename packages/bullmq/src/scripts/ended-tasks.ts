// Decodes the tasks that a script has ended from its reply.
import type { TaskId } from '@bullpen/contract'
import { pairsOf } from './pairs.ts'

export interface EndedTask {
  readonly id: TaskId
  readonly task: string
}

/** Decodes a reply that has the id and the name of each task, one after the other. */
export function endedTasks(reply: readonly string[]): readonly EndedTask[] {
  return pairsOf(reply).map(([id, task]) => ({ id: id as TaskId, task }))
}
