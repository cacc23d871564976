// Compares the CPU time of a task with one follow-up with that of a task whose handler enqueues the next task.
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type Comparison, compareRounds, describeRatios, measureRounds } from '../controlled-pairs.ts'

/**
 * How the next task is enqueued:
 *
 * - `caller`: the caller names it as `onSuccess`.
 * - `handler`: the handler adds it with `ctx.onSuccess`.
 * - `enqueue`: the handler calls `ctx.enqueue`.
 */
export const SIDES = ['caller', 'handler', 'enqueue'] as const
export type FollowUpSide = (typeof SIDES)[number]

/** For enqueueing the first task, and for running it, enqueueing the next one and running that. */
export const COSTS = ['process, enqueue', 'process, run', 'process', 'redis, enqueue', 'redis, run', 'redis'] as const
export type FollowUpCosts = Readonly<Record<(typeof COSTS)[number], number>>

export interface FollowUpsOptions {
  readonly redisUrl: string
  readonly pairs: number
  readonly tasks: number
}

export interface FollowUpsResult extends Comparison {
  readonly side: Exclude<FollowUpSide, 'enqueue'>
  /** In µs per first task, so that a ratio below 1 means that the follow-up is cheaper than `ctx.enqueue`. */
  readonly cost: (typeof COSTS)[number]
}

/** Runs the benchmark, with each measurement in a separate process. Both sides enqueue and run the same tasks. */
export async function* benchFollowUps({ redisUrl, pairs, tasks }: FollowUpsOptions): AsyncGenerator<FollowUpsResult> {
  const measure = (side: FollowUpSide) => () => measureSide(redisUrl, side, tasks)
  for (const side of ['caller', 'handler'] as const) {
    const rounds = await measureRounds(pairs, measure(side), measure('enqueue'))
    for (const cost of COSTS) yield { side, cost, ...compareRounds(rounds, (costs) => costs[cost]) }
  }
}

async function measureSide(redisUrl: string, side: FollowUpSide, tasks: number): Promise<FollowUpCosts> {
  const program = join(import.meta.dirname, 'follow-up-side.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [program, redisUrl, side, `${tasks}`])
  return JSON.parse(stdout) as FollowUpCosts
}

const NAMES = { caller: 'onSuccess of the call', handler: 'ctx.onSuccess' } as const

export function describeFollowUps({ side, cost, ...compared }: FollowUpsResult): string {
  const { theirs, ours } = compared
  const times = `${theirs.toFixed(1).padStart(7)} µs → ${ours.toFixed(1).padStart(6)} µs`
  return `${`ctx.enqueue → ${NAMES[side]}: ${cost}`.padEnd(56)}${times}   ${describeRatios(compared)}`
}
