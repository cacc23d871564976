// Compares this checkout's CPU time per task with another checkout's, using the same tasks and the same Redis.
import { join, resolve } from 'node:path'
import { type Comparison, compareRounds, describeCostRatios, measureRounds } from '../measuring/controlled-pairs.ts'
import { type Cost, readTaskCosts, type TaskCosts } from '../measuring/task-costs.ts'

const COSTS = ['process, enqueue', 'process, run', 'redis, enqueue', 'redis, run'] as const satisfies readonly Cost[]

export interface AgainstOptions {
  /** The other checkout, with its dependencies installed. */
  readonly checkout: string
  readonly pairs: number
  readonly tasks: number
  readonly redisUrl: string
}

export interface CostComparison extends Comparison {
  readonly kind: 'short' | 'long'
  /** In µs per task, so that a ratio below 1 means that this checkout is cheaper. */
  readonly cost: (typeof COSTS)[number]
}

const HERE = join(import.meta.dirname, '../../../..')

/** Runs the benchmark, with each measurement in a separate process. Yields the costs of short tasks, and then those of long tasks. */
export async function* benchAgainst({
  checkout,
  pairs,
  tasks,
  redisUrl,
}: AgainstOptions): AsyncGenerator<CostComparison> {
  for (const kind of ['short', 'long'] as const) {
    const rounds = await measureRounds(
      pairs,
      () => measureSide(HERE, redisUrl, kind, tasks),
      () => measureSide(resolve(checkout), redisUrl, kind, tasks),
    )
    for (const cost of COSTS) yield { kind, cost, ...compareRounds(rounds, (costs) => costs[cost]) }
  }
}

function measureSide(checkout: string, redisUrl: string, kind: string, tasks: number): Promise<TaskCosts> {
  return readTaskCosts(join(import.meta.dirname, 'against-side.ts'), checkout, redisUrl, kind, `${tasks}`)
}

export function describeCosts({ kind, cost, ...compared }: CostComparison): string {
  const { theirs, ours } = compared
  const times = `${theirs.toFixed(1).padStart(7)} µs → ${ours.toFixed(1).padStart(5)} µs`
  return `${`${kind}: ${cost}`.padEnd(24)}${times}   ${describeCostRatios(compared)}`
}
