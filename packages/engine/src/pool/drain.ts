// Winding a pool up: what runs may end, then is signalled; then what has ended is acknowledged.

import type { Clock } from '../ports/clock.ts'
import type { Consumer } from '../ports/consumer.ts'
import type { DrainDeadline } from './drain-deadline.ts'
import type { Slots } from './slots.ts'

/** What acknowledging takes when nothing runs, and the store answers. */
export const ACKNOWLEDGE_MS = { most: 1_000, least: 250 }

export interface WindingHost {
  readonly clock: Clock
  readonly crew: Slots
  readonly feed: Consumer
  /** The deadline has passed: every running attempt is to be signalled. */
  readonly signal: (graceMs: number) => void
}

/** Workers end, first those that are idle; what is left of the deadline is for acknowledging. The feed is not closed yet. */
export async function runDrain(urgency: DrainDeadline, { clock, crew, feed, signal }: WindingHost): Promise<void> {
  // What it fails to acknowledge is recovered by others; nobody listens yet when it fails.
  const stopped = feed.stop().catch(() => {})
  if (!(await urgency.within(ended(urgency, crew, stopped), () => urgency.leftMs))) {
    signal(urgency.graceMs)
    await urgency.within(crew.idle(), graceOver(clock, urgency.graceMs))
  } else if (urgency.light) {
    // Nothing is fetched any more.
    crew.end('TERMINATING_TASK_CH_CLOSED')
  }
  await urgency.within(stopped, acknowledging(urgency, clock))
}

/** Lightly: all that was taken, also what is still on its way. */
async function ended(urgency: DrainDeadline, crew: Slots, stopped: Promise<void>): Promise<void> {
  if (urgency.light) await Promise.race([stopped, urgency.soft])
  await crew.idle()
}

/** Once it has begun, nothing changes it. */
function graceOver(clock: Clock, graceMs: number): () => number {
  const at = clock.monotonic() + graceMs + ACKNOWLEDGE_MS.least
  return () => at - clock.monotonic()
}

/** Without a deadline it has all the time that the store may take to come back. */
function acknowledging(urgency: DrainDeadline, clock: Clock): () => number {
  let at = Number.POSITIVE_INFINITY
  return () => {
    const { most, least } = ACKNOWLEDGE_MS
    const now = clock.monotonic()
    if (urgency.leftMs < Number.POSITIVE_INFINITY) {
      at = Math.min(at, now + Math.max(least, Math.min(most, urgency.leftInAllMs)))
    }
    return at - now
  }
}
