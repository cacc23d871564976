// Decides whether a queue's poison tasks became dead recently enough to explain what is wrong now.
import type { PoisonFacts, QueueFacts } from './facts.ts'

/** For how long a task that killed its processes is reported, in ms. */
const RECENT_DEATH_MS = 3_600_000

/** Returns the queue's poison tasks if the last one became dead recently. */
export function recentPoison({ poison }: QueueFacts, now: number): PoisonFacts | undefined {
  return poison !== undefined && now - poison.newestAt < RECENT_DEATH_MS ? poison : undefined
}
