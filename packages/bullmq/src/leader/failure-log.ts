// Logs housekeeping failures, at most once a minute for each duty and queue.
import type { Log } from '@bullpen/contract'
import { isConnectionError } from '../redis/outages/outage-reporter.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import type { HousekeepingFailure } from './housekeeping.ts'

const INTERVAL_MS = 60_000

export interface FailureLogOptions {
  readonly log: Pick<Log, 'warn'>
  /** Called for each failure, even if its log line is suppressed. */
  readonly onFailed?: ((failure: { readonly queue: string; readonly duty: string }) => void) | undefined
  /** Returns the time in ms, by any clock that never goes back. */
  readonly now?: () => number
}

/** Returns a function that logs and reports a failure, unless the failure is only that Redis is unreachable. */
export function createFailureLog({
  log,
  onFailed = () => {},
  now = () => performance.now(),
}: FailureLogOptions): (failure: HousekeepingFailure) => void {
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
    onFailed({ queue, duty })
  }
}
