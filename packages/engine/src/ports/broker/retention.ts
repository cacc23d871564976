// Defines how long a queue's ended tasks are kept.
import type { FinalStatus } from '@bullpen/contract'

/** Which ended tasks of one status are kept. A task is removed if either limit applies to it. */
export interface KeptTasks {
  /** How long a task is kept after its end, in ms. Defaults to no limit. */
  readonly ageMs?: number | undefined
  /** How many tasks are kept. If there are more, the tasks that ended first are removed. Defaults to no limit. */
  readonly count?: number | undefined
}

/** The limits by status. Tasks with a status that is left out are kept until they are deleted. */
export type Retention = Readonly<Partial<Record<FinalStatus, KeptTasks>>>
