// Pauses between the scripts of a long piece of work, so that other clients get their share of Redis's time.
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * The maximum pause, in ms. If a page's reply was lost, the measured time includes the outage, but the page took Redis no longer
 * than usual.
 */
const MAX_PAUSE_MS = 100

/**
 * Waits as long as a page took, so that at least half of Redis's time is left for other clients. `sentAt` is when the page's script
 * was sent, on the monotonic clock. The pause takes at least 1 ms and at most 100 ms, and does not keep the process alive.
 */
export function pauseAfterPage(sentAt: number): Promise<void> {
  return sleep(Math.min(performance.now() - sentAt, MAX_PAUSE_MS), undefined, { ref: false })
}
