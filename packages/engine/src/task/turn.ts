// Determines the turn of a new task.
import type { QueueDefinition } from '@bullpen/contract'
import { weightOf } from '@bullpen/contract/internal'
import type { Turn } from '../ports/broker/new-task.ts'

/** Returns the turn of a task with this concurrency key, or undefined if it has no key or its queue is not fair. */
export function turnOf({ fairness }: QueueDefinition, key: string | undefined): Turn | undefined {
  return fairness === undefined || key === undefined ? undefined : { key, weight: weightOf(fairness, key) }
}
