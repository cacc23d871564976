// Fetching, again and again: a feed that fails is opened and run anew after a wait that grows.
import type { Consumer } from '../ports/consumer.ts'
import type { Clock } from '../ports/ports.ts'

/** Between two starts of a feed that fails: doubled from the first to the last; anew once it has run for that long. */
const RESTART = { firstMs: 500, lastMs: 30_000 }

export interface FetchLoopHost {
  readonly clock: Clock
  readonly runs: () => boolean
  /** It fetches now, for the first time or again. Returns how many slots had failed meanwhile. */
  readonly begun: () => number
  readonly failed: () => void
  readonly restarted: (slots: number, afterMs: number) => void
}

/** Returns what begins it, and what keeps it from beginning again. */
export function createFetchLoop(feed: Consumer, { clock, runs, begun, failed, restarted }: FetchLoopHost) {
  let stopRestart = (): void => {}

  const fetchOn = (failures: number): number => {
    const slots = begun()
    const since = clock.monotonic()
    feed.run().catch(() => restart(clock.monotonic() - since > RESTART.lastMs ? 0 : failures))
    return slots
  }

  const restart = (failures: number): void => {
    if (!runs()) return
    failed()
    const afterMs = Math.min(RESTART.firstMs * 2 ** failures, RESTART.lastMs)
    const again = (): void => {
      if (!runs()) return
      restarted(fetchOn(failures + 1), afterMs)
    }
    stopRestart = clock.after(afterMs, () => {
      feed.open().then(again, () => restart(failures + 1))
    })
  }

  return { begin: (): void => void fetchOn(0), end: (): void => stopRestart() }
}
