// Enqueues a steady load, and for a while many times as much.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Broker } from '@bullpen/engine'
import { enqueueSteadily } from '../ledger/load.ts'
import type { Random } from '../ledger/random.ts'
import type { Work } from '../programs/catalogue.ts'
import type { Burst } from './scaling-figures.ts'

export interface BurstPlan {
  /** How long tasks take. Short ones are more frequent. */
  readonly shortestMs: number
  readonly longestMs: number
  /** How many tasks run at once under the usual load, on average. */
  readonly usual: number
  /** By how much the load of the burst exceeds the usual load. */
  readonly times: number
  readonly beforeMs: number
  readonly burstMs: number
  readonly afterMs: number
}

/** Resolves with the ids of the accepted tasks when the whole load has been enqueued. */
export async function enqueueBurst(
  broker: Broker,
  definition: Work,
  plan: BurstPlan,
  random: Random,
): Promise<{ readonly accepted: readonly string[]; readonly burst: Burst }> {
  const { usual, times, beforeMs, burstMs, afterMs } = plan
  const load = {
    // Little's law
    ratePerSecond: usual / (meanOf(plan) / 1_000),
    input: () => ({ ms: durationIn(plan, random), listens: false }),
    definitions: [definition],
  }
  let isOver = false
  const steady = enqueueSteadily(broker, { ...load, tasks: 0, more: () => !isOver })
  try {
    await sleep(beforeMs)
    const burst = { from: Date.now(), to: Date.now() + burstMs }
    const ratePerSecond = (times - 1) * load.ratePerSecond
    const more = await enqueueSteadily(broker, { ...load, ratePerSecond, tasks: (ratePerSecond * burstMs) / 1_000 })
    await sleep(afterMs)
    isOver = true
    return { accepted: [...(await steady), ...more], burst }
  } finally {
    isOver = true
  }
}

type Durations = Pick<BurstPlan, 'shortestMs' | 'longestMs'>

/** Returns a duration of which the logarithm is uniformly distributed. */
function durationIn({ shortestMs, longestMs }: Durations, random: Random): number {
  return Math.round(shortestMs * (longestMs / shortestMs) ** random())
}

function meanOf({ shortestMs, longestMs }: Durations): number {
  return (longestMs - shortestMs) / Math.log(longestMs / shortestMs)
}
