// Waits until a queue is empty. This is used for a light drain of the whole queue.
import type { Clock, Fleet } from '@bullpen/engine/internal'

const POLL_MS = 250
/** An API may learn that a queue no longer accepts tasks up to 3 s later than the workers do. */
const ADMISSION_CLOSED_AFTER_MS = 3_000

/** Calls `onEmpty` once, when the queue has no task left that could run now. Returns a function that stops the wait. */
export function waitUntilEmpty(fleet: Fleet, queue: string, clock: Clock, onEmpty: () => void): () => void {
  const since = clock.monotonic()
  let stopped = false
  let cancelTimer = (): void => {}
  const poll = async (): Promise<void> => {
    // While Redis is unreachable, the number is unknown, so keep waiting.
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
