// Compares the CPU time of tasks whose concurrency keys take turns, and have limits, with that of tasks without a concurrency
// key, in a queue with `fairness` but without limits.
import { join } from 'node:path'
import { type Comparison, compareRounds, describeCostRatios, measureRounds } from '../measuring/controlled-pairs.ts'
import { COSTS, type Cost, readTaskCosts, type TaskCosts } from '../measuring/task-costs.ts'
import { TURNS, type Turns } from './workload.ts'

export interface TurnsOptions {
  readonly redisUrl: string
  readonly pairs: number
  readonly tasks: number
  /** How many concurrency keys the tasks have. */
  readonly keys: number
}

export interface TurnsComparison extends Comparison {
  readonly bench: 'turns'
  readonly keys: number
  /** What the keys do. */
  readonly what: Turns
  /** In µs per task, so that a ratio of 1.05 means that the keys cost 5%. */
  readonly cost: Cost
}

/** One side: tasks of this definition that share `keys` concurrency keys, or have none. */
export interface TurnsSide {
  readonly what: Turns
  readonly keys: number
  readonly tasks: number
}

/** Runs the benchmark, with each measurement in a separate process. */
export async function* benchTurns({ redisUrl, pairs, tasks, keys }: TurnsOptions): AsyncGenerator<TurnsComparison> {
  const side = (what: Turns, keys: number) => () => measureSide(redisUrl, { what, keys, tasks })
  for (const what of Object.keys(TURNS) as Turns[]) {
    const rounds = await measureRounds(pairs, side(what, keys), side('take turns', 0))
    for (const cost of COSTS)
      yield { bench: 'turns', keys, what, cost, ...compareRounds(rounds, (costs) => costs[cost]) }
  }
}

/** Measures one side in a process of its own. */
export function measureSide(redisUrl: string, { what, keys, tasks }: TurnsSide): Promise<TaskCosts> {
  return readTaskCosts(join(import.meta.dirname, 'turns-process.ts'), redisUrl, what, `${keys}`, `${tasks}`)
}

export function describeTurns({ keys, what, cost, ...compared }: TurnsComparison): string {
  const { theirs, ours } = compared
  const times = `${theirs.toFixed(1).padStart(7)} µs → ${ours.toFixed(1).padStart(6)} µs`
  return `${`no key → ${keys} keys that ${what}: ${cost}`.padEnd(66)}${times}   ${describeCostRatios(compared)}`
}
