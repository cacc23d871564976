// Measures from which size of an item on a pipeline is faster across the fleet than within one process.
import { performance } from 'node:perf_hooks'
import { runPipeline } from '@bullpen/pipeline'
import { median } from '../measuring/pairs.ts'
import { roundsPerMicrosecond } from '../measuring/spin.ts'
import { type Fleet, openFleet } from './fleet.ts'
import { CONCURRENCY, functions, handlers, type Load, tasks } from './work.ts'

/** The work of an item in ms, and how many items a run has. */
const SIZES = [
  { ms: 0.1, items: 4_000 },
  { ms: 1, items: 2_000 },
  { ms: 10, items: 400 },
  { ms: 100, items: 80 },
] as const

/** Where the pipeline runs, and on how many processes that run handlers. */
const SIDES = [
  { side: 'one process, functions', processes: 1 },
  { side: 'one process, tasks', processes: 1 },
  { side: 'fleet, 1 worker', processes: 1 },
  { side: 'fleet, 2 workers', processes: 2 },
] as const

export interface PipelineFleetResult {
  readonly side: (typeof SIDES)[number]['side']
  /** The work of one item, half of it computing and half of it waiting. */
  readonly workMs: number
  /** The medians of all rounds. */
  readonly itemsPerSecond: number
  /**
   * The time per item beyond that of the work itself, if the processes computed without a pause and the waits of {@link CONCURRENCY} items
   * overlapped.
   */
  readonly overheadUs: number
  readonly rounds: readonly number[]
}

export interface PipelineFleetOptions {
  readonly redisUrl: string
  readonly rounds: number
}

/** Measures all sides in turn in each round, so that a noisy machine affects all of them. */
export async function* benchPipelineFleet({
  redisUrl,
  rounds,
}: PipelineFleetOptions): AsyncGenerator<PipelineFleetResult> {
  const perMicrosecond = roundsPerMicrosecond()
  for (const { ms, items } of SIZES) {
    const load: Load = { items, rounds: Math.round((perMicrosecond * ms * 1_000) / 2), waitMs: ms / 2 }
    const measured = SIDES.map((): number[] => [])
    for (let round = 0; round < rounds; round++) {
      for (const [i, { side, processes }] of SIDES.entries()) measured[i]?.push(await measure(side, processes))
    }
    async function measure(side: PipelineFleetResult['side'], processes: number): Promise<number> {
      if (side === 'one process, functions') return rate(load, (given) => runPipeline(functions, given))
      if (side === 'one process, tasks') return rate(load, (given) => runPipeline(tasks, given, { handlers }))
      const fleet: Fleet = await openFleet(redisUrl, processes)
      try {
        return await rate(load, fleet.run)
      } finally {
        await fleet.close()
      }
    }
    for (const [i, { side, processes }] of SIDES.entries()) {
      const rates = measured[i] ?? []
      const itemsPerSecond = median(rates)
      const idealMs = Math.max(ms / 2 / processes, ms / CONCURRENCY)
      const overheadUs = 1_000_000 / itemsPerSecond - 1_000 * idealMs
      yield { side, workMs: ms, itemsPerSecond, overheadUs, rounds: rates }
    }
  }
}

/** Returns the items per second of a run, after one with a tenth of the items that warms up. */
async function rate(load: Load, run: (load: Load) => Promise<unknown>): Promise<number> {
  await run({ ...load, items: Math.ceil(load.items / 10) })
  const began = performance.now()
  await run(load)
  return (load.items / (performance.now() - began)) * 1_000
}

export function describePipelineFleet({ side, workMs, itemsPerSecond, overheadUs }: PipelineFleetResult): string {
  const number = (value: number): string => value.toLocaleString('en-US', { maximumFractionDigits: 0 })
  const work = `${workMs} ms per item`.padStart(15)
  return `${work}, ${side.padEnd(24)}${number(itemsPerSecond).padStart(9)} items/s${number(overheadUs).padStart(9)} µs overhead per item`
}
