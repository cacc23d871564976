// The field `lane` of a task, which says in which lane it waits (../../store/lua/includes/lanes/lanes.lua).
import type { Need, NewTask } from '@bullpen/engine'
import { keyIn, laneName } from './limiters/needs.ts'

/** Returns the field `lane` of a task, or '' if the task has no lane. */
export function encodeLane({ turn, needs = [], services = [] }: Pick<NewTask, 'turn' | 'needs' | 'services'>): string {
  if (turn === undefined && needs.length === 0 && services.length === 0) return ''
  const { key, weight } = turn ?? { key: '', weight: 1 }
  return `${weight} ${laneName(key, [...needs, ...services.map(toNeed)])}`
}

/**
 * Returns the concurrency key in the field `lane` of a task, or undefined. The envelope of a task whose key takes turns
 * does not contain the key, which would take Redis 40 bytes more for each task.
 */
export function keyOfLane(lane: string | undefined): string | undefined {
  return lane === undefined ? undefined : keyIn(lane.slice(lane.indexOf(' ') + 1))
}

/** A task needs 1 of each service on which it depends (../../store/lua/includes/limits/gates.lua). */
const toNeed = (service: string): Need => ({ limiter: `service:${service}`, amount: 1 })
