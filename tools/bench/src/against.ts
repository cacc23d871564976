// Compares this checkout's CPU time per task with another checkout's, using the same tasks and the same Redis.
import { execFile } from 'node:child_process'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { median } from './pairs.ts'

/** CPU time per task, in µs. */
export type SideCosts = Readonly<Record<Cost, number>>

const COSTS = ['process, enqueue', 'process, run', 'redis, enqueue', 'redis, run'] as const
type Cost = (typeof COSTS)[number]

export interface AgainstOptions {
  /** The other checkout, with its dependencies installed. */
  readonly checkout: string
  readonly pairs: number
  readonly tasks: number
  readonly redisUrl: string
}

interface Comparison {
  readonly kind: 'short' | 'long'
  readonly cost: Cost
  /** The medians, in µs per task. */
  readonly theirs: number
  readonly ours: number
  /** Ours divided by theirs. A value below 1 means that this checkout is cheaper. */
  readonly ratio: Ratio
  /** The other checkout divided by itself, which shows how much of the ratio is noise. */
  readonly control: Ratio
}

interface Ratio {
  readonly median: number
  readonly least: number
  readonly most: number
}

const HERE = join(import.meta.dirname, '../../..')

/**
 * Runs the benchmark. Each round measures the other checkout twice and this one once, each in a separate process. The order is
 * reversed in every second round. Yields the comparisons for short tasks, and then those for long tasks.
 */
export async function* benchAgainst({ checkout, pairs, tasks, redisUrl }: AgainstOptions): AsyncGenerator<Comparison> {
  const theirs = resolve(checkout)
  for (const kind of ['short', 'long'] as const) {
    const measure = (tree: string): Promise<SideCosts> => measureSide(tree, redisUrl, kind, tasks)
    const rounds: { readonly theirs: SideCosts; readonly ours: SideCosts; readonly again: SideCosts }[] = []
    for (let round = 0; round < pairs; round++) {
      const order = [theirs, HERE, theirs]
      const costs: SideCosts[] = []
      for (const tree of order) costs.push(await measure(tree))
      // In every second round, the second measurement of the other checkout is the one that is compared.
      const [first, ours, last] = costs as [SideCosts, SideCosts, SideCosts]
      rounds.push(round % 2 === 0 ? { theirs: first, ours, again: last } : { theirs: last, ours, again: first })
    }
    for (const cost of COSTS) {
      yield {
        kind,
        cost,
        theirs: median(rounds.map((each) => each.theirs[cost])),
        ours: median(rounds.map((each) => each.ours[cost])),
        ratio: ratioOf(rounds.map((each) => each.ours[cost] / each.theirs[cost])),
        control: ratioOf(rounds.map((each) => each.again[cost] / each.theirs[cost])),
      }
    }
  }
}

async function measureSide(checkout: string, redisUrl: string, kind: string, tasks: number): Promise<SideCosts> {
  const program = join(import.meta.dirname, 'against-side.ts')
  const { stdout } = await promisify(execFile)(process.execPath, [program, checkout, redisUrl, kind, `${tasks}`])
  return JSON.parse(stdout) as SideCosts
}

function ratioOf(values: readonly number[]): Ratio {
  return { median: median(values), least: Math.min(...values), most: Math.max(...values) }
}

export function describeComparison({ kind, cost, theirs, ours, ratio, control }: Comparison): string {
  const times = `${theirs.toFixed(1).padStart(7)} µs → ${ours.toFixed(1).padStart(5)} µs`
  const spread = ({ least, most }: Ratio): string => `(${least.toFixed(3)} to ${most.toFixed(3)})`
  const [ratios, controls] = [ratio, control].map((each) => `${each.median.toFixed(3)} ${spread(each)}`)
  return `${`${kind}: ${cost}`.padEnd(24)}${times}   ratio ${ratios}   control ${controls}`
}
