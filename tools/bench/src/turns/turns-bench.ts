// Compares the CPU time of tasks whose concurrency keys take turns with that of tasks without a concurrency key, in the same queue.
import { join } from 'node:path'
import { type Comparison, compareRounds, describeRatios, measureRounds } from '../measuring/controlled-pairs.ts'
import { COSTS, type Cost, readTaskCosts, type TaskCosts } from '../measuring/task-costs.ts'

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
  /** In µs per task, so that a ratio of 1.05 means that turns cost 5%. */
  readonly cost: Cost
}

/** Runs the benchmark, with each measurement in a separate process. */
export async function* benchTurns({ redisUrl, pairs, tasks, keys }: TurnsOptions): AsyncGenerator<TurnsComparison> {
  const side = (keys: number) => () => measureSide(redisUrl, keys, tasks)
  const rounds = await measureRounds(pairs, side(keys), side(0))
  for (const cost of COSTS) yield { bench: 'turns', keys, cost, ...compareRounds(rounds, (costs) => costs[cost]) }
}

/** Measures tasks that share `keys` concurrency keys. If `keys` is 0, the tasks have no key. */
export function measureSide(redisUrl: string, keys: number, tasks: number): Promise<TaskCosts> {
  return readTaskCosts(join(import.meta.dirname, 'turns-process.ts'), redisUrl, `${keys}`, `${tasks}`)
}

export function describeTurns({ keys, cost, ...compared }: TurnsComparison): string {
  const { theirs, ours } = compared
  const times = `${theirs.toFixed(1).padStart(7)} µs → ${ours.toFixed(1).padStart(6)} µs`
  return `${`no key → ${keys} keys that take turns: ${cost}`.padEnd(58)}${times}   ${describeRatios(compared)}`
}
