// Waits until a queue is empty, while its whole fleet drains lightly.
import type { Clock, Fleet } from '@bullpen/engine/internal'

const LOOK_EVERY_MS = 250
/** An API worker may hear this long after the others that no task is taken in any more. */
const INTAKE_CLOSED_AFTER_MS = 3_000

/** Calls back once, when nothing of it remains that could be worked now. Returns what ends the wait. */
export function waitUntilEmpty(fleet: Fleet, queue: string, clock: Clock, empty: () => void): () => void {
  const since = clock.monotonic()
  let over = false
  let stopTimer = (): void => {}
  const look = async (): Promise<void> => {
    // Redis away: nothing is known, and the pools go on.
    const remaining = await fleet.remaining(queue).catch(() => undefined)
    if (over) return
    if (remaining === 0 && clock.monotonic() - since > INTAKE_CLOSED_AFTER_MS) empty()
    else stopTimer = clock.after(LOOK_EVERY_MS, () => void look())
  }
  void look()
  return () => {
    over = true
    stopTimer()
  }
}
