// Sends the result of a process of the benchmark `runs` to its parent.
import { performance } from 'node:perf_hooks'
import { expectedSum, type RunDone, type RunLoad } from './workload.ts'

/** Runs one side of the benchmark and reports it. `work` resolves with the sum of all results. */
export async function reportDone({ items }: RunLoad, work: () => Promise<number>): Promise<void> {
  const began = performance.now()
  const sum = await work()
  const seconds = (performance.now() - began) / 1_000
  if (sum !== expectedSum(items)) throw new Error(`the sum of the results is ${sum}; expected ${expectedSum(items)}`)
  process.send?.({ seconds, rssMiB: Math.round(process.resourceUsage().maxRSS / 1_024) } satisfies RunDone)
}
