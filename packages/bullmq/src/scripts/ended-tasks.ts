// The tasks that a script has ended, in its reply.
import type { TaskId } from '@bullpen/contract'

export interface EndedTask {
  readonly id: TaskId
  readonly task: string
}

/** Decodes the id and the name of each task. */
export function endedTasks(reply: readonly string[]): readonly EndedTask[] {
  return Array.from({ length: reply.length / 2 }, (_, i) => ({
    id: reply[2 * i] as TaskId,
    task: reply[2 * i + 1] ?? '',
  }))
}
