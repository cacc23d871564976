// The load of the drill `fairness`: one concurrency key has a long backlog when the tasks of many other keys arrive.
import type { Scale } from '../report.ts'

export interface Plan {
  readonly processes: number
  /** The slots of each process. */
  readonly slots: number
  /** How many tasks of the noisy key wait when the tasks of the other keys arrive. */
  readonly backlog: number
  /** How many other keys there are. */
  readonly keys: number
  readonly tasksPerKey: number
  /** How long a task takes. */
  readonly taskMs: number
}

export const PLANS: Readonly<Record<Scale, Plan>> = {
  small: { processes: 2, slots: 5, backlog: 600, keys: 8, tasksPerKey: 10, taskMs: 20 },
  full: { processes: 4, slots: 50, backlog: 100_000, keys: 50, tasksPerKey: 100, taskMs: 100 },
}

export const NOISY_KEY = 'noisy'

/** Returns the key of the n-th of the other tasks, so that the keys' tasks arrive in turn. */
export const otherKey = (n: number, { keys }: Plan): string => `key-${n % keys}`
