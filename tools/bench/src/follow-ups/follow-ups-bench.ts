// Compares the CPU time of a task with one follow-up with that of a task whose handler enqueues the next task.
import { join } from 'node:path'
import { type Comparison, compareRounds, describeCostRatios, measureRounds } from '../measuring/controlled-pairs.ts'
import { COSTS, type Cost, readTaskCosts, type TaskCosts } from '../measuring/task-costs.ts'

/**
 * How the next task is enqueued:
 *
 * - `caller`: the caller names it as `onSuccess`.
 * - `handler`: the handler adds it with `ctx.onSuccess`.
 * - `enqueue`: the handler calls `ctx.enqueue`.
 */
export const SIDES = ['caller', 'handler', 'enqueue'] as const
export type FollowUpSide = (typeof SIDES)[number]

export interface FollowUpsOptions {
  readonly redisUrl: string
  readonly pairs: number
  readonly tasks: number
}

export interface FollowUpsResult extends Comparison {
  readonly side: Exclude<FollowUpSide, 'enqueue'>
  /**
   * In µs per first task: for enqueueing it, and for running it, enqueueing the next one and running that. A ratio below 1 means that the
   * follow-up is cheaper than `ctx.enqueue`.
   */
  readonly cost: Cost
}

/** Runs the benchmark, with each measurement in a separate process. Both sides enqueue and run the same tasks. */
export async function* benchFollowUps({ redisUrl, pairs, tasks }: FollowUpsOptions): AsyncGenerator<FollowUpsResult> {
  const measure = (side: FollowUpSide) => () => measureSide(redisUrl, side, tasks)
  for (const side of ['caller', 'handler'] as const) {
    const rounds = await measureRounds(pairs, measure(side), measure('enqueue'))
    for (const cost of COSTS) yield { side, cost, ...compareRounds(rounds, (costs) => costs[cost]) }
  }
}

function measureSide(redisUrl: string, side: FollowUpSide, tasks: number): Promise<TaskCosts> {
  return readTaskCosts(join(import.meta.dirname, 'follow-up-side.ts'), redisUrl, side, `${tasks}`)
}

const NAMES = { caller: 'onSuccess of the call', handler: 'ctx.onSuccess' } as const

export function describeFollowUps({ side, cost, ...compared }: FollowUpsResult): string {
  const { theirs, ours } = compared
  const times = `${theirs.toFixed(1).padStart(7)} µs → ${ours.toFixed(1).padStart(6)} µs`
  return `${`ctx.enqueue → ${NAMES[side]}: ${cost}`.padEnd(56)}${times}   ${describeCostRatios(compared)}`
}
