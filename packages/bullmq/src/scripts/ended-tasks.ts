// Decodes the tasks that a script has ended from its reply.
import type { TaskId } from '@bullpen/contract'

export interface EndedTask {
  readonly id: TaskId
  readonly task: string
}

/** Decodes a reply that has the id and the name of each task, one after the other. */
export function endedTasks(reply: readonly string[]): readonly EndedTask[] {
  return Array.from({ length: reply.length / 2 }, (_, i) => ({
    id: reply[2 * i] as TaskId,
    task: reply[2 * i + 1] ?? '',
  }))
}
