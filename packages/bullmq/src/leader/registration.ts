// Keeps a process's queues registered for the leader, whatever happens to the data in Redis.
//
// Redis may lose the registry while the process is connected: by FLUSHALL, or by a failover to a replica that lagged behind. The
// leader then does not visit any queue until the queues are registered again. The registration is therefore repeated whenever a
// connection is established or a cluster's nodes have changed, and about once a minute.
import type { Log } from '@bullpen/contract'
import { isConnectionError } from '../redis/outages/outage-reporter.ts'
import { onServerChange } from '../redis/server/server-changes.ts'
import type { Commander } from '../scripts/script.ts'

/** The average time between two registrations, in ms. */
const REPEAT_EVERY_MS = 60_000
/** The average delay before a failed registration is retried, in ms. */
const RETRY_MS = 5_000
/** The average delay after a change of the server, in ms. A cluster client reports several changes at once. */
const CHANGED_MS = 50

export interface RegistrationOptions {
  readonly redis: Pick<Commander, 'on' | 'off'>
  /** Registers the queues again. Must be idempotent. */
  readonly repeat: () => Promise<void>
  readonly log: Log
  /** Defaults to 60,000. Tests set this. */
  readonly everyMs?: number | undefined
  /** Returns a number from 0 to 1. */
  readonly random?: () => number
}

export interface Registration {
  close(): void
}

/** Starts repeating the registration. The timer does not keep the process alive. */
export function openRegistration(options: RegistrationOptions): Registration {
  const { redis, repeat, log, everyMs = REPEAT_EVERY_MS, random = Math.random } = options
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  // The delays vary by a quarter, so that processes that started at the same time do not all register at the same time.
  const schedule = (averageMs: number): void => {
    clearTimeout(timer)
    if (!isClosed) timer = setTimeout(run, averageMs * (0.75 + random() / 2)).unref()
  }
  let changes = 0
  const run = (): void => {
    // A registration that was under way when the server changed may have reached the earlier one.
    const known = changes
    const next = (averageMs: number): void => schedule(changes === known ? averageMs : CHANGED_MS)
    repeat().then(
      () => next(everyMs),
      (err: unknown) => {
        // The outage reporter logs connection errors.
        if (!isClosed && !isConnectionError(err)) log.warn({ err }, 'queues not registered for the leader')
        next(RETRY_MS)
      },
    )
  }

  const stopWatching = onServerChange(redis, () => {
    changes++
    schedule(CHANGED_MS)
  })
  schedule(everyMs)
  return {
    close() {
      isClosed = true
      clearTimeout(timer)
      stopWatching()
    },
  }
}
