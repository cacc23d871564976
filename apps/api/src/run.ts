// Runs an API as a process does: one line when it listens, an orderly end on SIGTERM or SIGINT.
import type { Log } from '@bullpen/contract'
import type { Api } from './create-api.ts'

/** From the signal to the exit. A request that is still unanswered by then would be cut off by the platform anyway. */
const STOP_WITHIN_MS = 10_000

/** Listens, and resolves once signals are watched for; the process then ends by itself or by a signal. */
export async function runUntilStopped(api: Api, log: Log): Promise<void> {
  let stopping = false
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) process.exit(1)
    stopping = true
    log.info({ signal }, 'the API is stopping')
    setTimeout(() => {
      log.error({ withinMs: STOP_WITHIN_MS }, 'the API could not stop in time: requests were cut off')
      process.exit(1)
    }, STOP_WITHIN_MS).unref()
    api.close().then(
      () => process.exit(0),
      (err: unknown) => {
        log.error({ err }, 'the API did not stop well')
        process.exit(1)
      },
    )
  }
  // Before it listens: a signal that comes early must not kill it without closing.
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
  log.info({ ...(await api.listen()) }, 'the API listens')
}
