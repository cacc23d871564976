// Runs the housekeeping of a broker's queues every two seconds.
import type { Log } from '@bullpen/contract'
import { throttledLog } from '../redis/throttled-log.ts'

/** An expired task is noticed after this long at most, plus the time of one run, in ms. */
export const MAINTENANCE_EVERY_MS = 2_000

/** Repeats `run`, one at a time, until the returned function is called. Keeps no process alive. */
export function repeatMaintenance(run: () => Promise<void>, log: Log): () => void {
  const logFailure = throttledLog((err: unknown, suppressed) => log.debug({ err, suppressed }, 'maintenance failed'))
  let isRunning = false
  const timer = setInterval(() => {
    if (isRunning) return
    isRunning = true
    run()
      .catch(logFailure)
      .finally(() => {
        isRunning = false
      })
  }, MAINTENANCE_EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
