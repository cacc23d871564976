// Waits until a queue is empty, for a light drain of the whole queue.
import type { Clock, Fleet } from '@bullpen/engine/internal'

const POLL_MS = 250
/** An API may learn up to 3 s after the workers that its queue no longer accepts tasks. */
const ADMISSION_CLOSED_AFTER_MS = 3_000

/** Calls `onEmpty` once, when no task of the queue is left that could run now. Returns what stops the wait. */
export function waitUntilEmpty(fleet: Fleet, queue: string, clock: Clock, onEmpty: () => void): () => void {
  const since = clock.monotonic()
  let stopped = false
  let cancelTimer = (): void => {}
  const poll = async (): Promise<void> => {
    // While Redis is away nothing is known: keep waiting.
    const remaining = await fleet.remaining(queue).catch(() => undefined)
    if (stopped) return
    if (remaining === 0 && clock.monotonic() - since > ADMISSION_CLOSED_AFTER_MS) onEmpty()
    else cancelTimer = clock.after(POLL_MS, () => void poll())
  }
  void poll()
  return () => {
    stopped = true
    cancelTimer()
  }
}
