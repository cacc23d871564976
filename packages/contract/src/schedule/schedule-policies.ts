// Defines what happens to ticks that were missed, and to ticks that find the previous run unfinished.

/**
 * What happens at a tick if the previous run has not ended:
 *
 * - `skip`: nothing is enqueued for this tick.
 * - `allow`: the new run is enqueued at once, and the runs overlap.
 * - `queue`: the new run is enqueued when the previous one has ended. At most 100 runs wait, and further ticks are skipped.
 * - `cancel`: the previous run is cancelled, and the new one is enqueued when the previous one has ended. If another run is already
 *   waiting, the new one replaces it.
 */
export const OVERLAPS = ['skip', 'allow', 'queue', 'cancel'] as const

export type Overlap = (typeof OVERLAPS)[number]

/**
 * What happens to missed ticks. A tick is missed if it was not handled within ten seconds, for example because no process of the
 * namespace was running, or because Redis was unreachable.
 *
 * - `skip`: nothing is enqueued for missed ticks.
 * - `one`: the newest missed tick is enqueued.
 * - `{ max: n }`: the newest `n` missed ticks are enqueued, from 1 to 100.
 */
export type CatchUp = 'skip' | 'one' | { readonly max: number }

export const MAX_CATCH_UP = 100
/** The maximum number of runs that wait for the previous run of their schedule to end. */
export const MAX_WAITING_RUNS = 100

/** Returns the maximum number of missed ticks that are enqueued. */
export function catchUpLimit(catchUp: CatchUp): number {
  if (catchUp === 'skip') return 0
  return catchUp === 'one' ? 1 : catchUp.max
}
