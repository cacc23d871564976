// Logs failures of the housekeeping, at most once a minute for each duty and queue.
import type { Log } from '@bullpen/contract'
import { isConnectionError } from '../redis/outage-reporter.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import type { HousekeepingFailure } from './housekeeping.ts'

const INTERVAL_MS = 60_000

/** `now` returns the time in ms, on any clock that does not jump back. */
export function createFailureLog(
  log: Pick<Log, 'warn'>,
  now: () => number = () => performance.now(),
): (failure: HousekeepingFailure) => void {
  const logs = new Map<string, (error: unknown) => void>()
  return ({ queue, duty, error }) => {
    // The outage reporter logs connection errors.
    if (isConnectionError(error)) return
    const key = `${duty} ${queue}`
    const write =
      logs.get(key) ??
      throttledLog(
        (err: unknown, suppressed) => log.warn({ err, queue, duty, suppressed }, 'housekeeping failed'),
        now,
        INTERVAL_MS,
      )
    logs.set(key, write)
    write(error)
  }
}
