// Runs the housekeeping of a broker's queues every two seconds.
import type { Log } from '@bullpen/contract'
import { throttledLog } from '../redis/throttled-log.ts'

/** The interval between runs, in ms. An expired task is noticed within this time plus the duration of one run. */
export const MAINTENANCE_EVERY_MS = 2_000

/** Repeats `run`, one run at a time, until the returned function is called. Its timer does not keep the process alive. */
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
