// Waits for a condition, such as the state of another process, for a limited time.
import { setTimeout as sleep } from 'node:timers/promises'

const POLL_MS = 10

/** Looks every 10 ms. Returns whether the condition became true within `withinMs`. */
export async function holdsWithin(withinMs: number, holds: () => boolean | Promise<boolean>): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > deadline) return false
    await sleep(POLL_MS)
  }
  return true
}
