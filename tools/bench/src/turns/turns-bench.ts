// Compares the CPU time of tasks whose concurrency keys take turns with that of tasks without a concurrency key, in the same queue.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Comparison, compareRounds, describeRatios, measureRounds } from '../controlled-pairs.ts'

/** For enqueueing the tasks, for running them, and for both. */
export const COSTS = ['process, enqueue', 'process, run', 'process', 'redis, enqueue', 'redis, run', 'redis'] as const
type Cost = (typeof COSTS)[number]

/** CPU time per task, in µs. */
export type TurnCosts = Readonly<Record<Cost, number>>

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
export async function measureSide(redisUrl: string, keys: number, tasks: number): Promise<TurnCosts> {
  const program = join(import.meta.dirname, 'turns-process.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [program, redisUrl, `${keys}`, `${tasks}`])
  return JSON.parse(stdout) as TurnCosts
}

export function describeTurns({ keys, cost, ...compared }: TurnsComparison): string {
  const { theirs, ours } = compared
  const times = `${theirs.toFixed(1).padStart(7)} µs → ${ours.toFixed(1).padStart(6)} µs`
  return `${`no key → ${keys} keys that take turns: ${cost}`.padEnd(58)}${times}   ${describeRatios(compared)}`
}
