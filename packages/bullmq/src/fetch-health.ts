// Tells a pool when its consumer cannot fetch tasks, and when it can again: from the first fetch that fails, or from the loss of the
// connection, until a fetch succeeds or the connection is back. Meanwhile, fetches that fail are repeated after pauses of up to 1 s.
import type { Log } from '@bullpen/contract'
import type { ConsumerHost } from '@bullpen/engine/internal'
import { isConnectionError } from './redis/outages/outage-reporter.ts'
import { retryDelay } from './redis/redis-client.ts'

export interface FetchHealth {
  /** Reports that a fetch has failed. Resolves when it may be repeated. */
  failed(error: unknown): Promise<void>
  /** Reports that the connection has been lost. Commands wait until it is back. */
  lost(): void
  /** Reports that a fetch has succeeded, or that the connection is back. */
  works(): void
  /** Ends the pause, because no fetch follows. */
  stop(): void
}

export function createFetchHealth(
  slots: Pick<ConsumerHost, 'fetchingFailed' | 'fetchingResumed'>,
  { queue, log }: { readonly queue: string; readonly log: Log },
): FetchHealth {
  let failedAt: number | undefined
  /** Whether a fetch was refused. The outage reporter logs the loss and the return of the connection. */
  let isRefused = false
  let failures = 0
  let pause: { readonly over: Promise<void>; readonly end: () => void } | undefined

  const lost = (): void => {
    failedAt ??= performance.now()
    slots.fetchingFailed()
  }

  const beginPause = () => {
    const { promise: over, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(() => end(), retryDelay(failures++)).unref()
    const end = (): void => {
      clearTimeout(timer)
      pause = undefined
      resolve()
    }
    return { over, end }
  }

  return {
    lost,
    failed(error) {
      if (failedAt === undefined && !isConnectionError(error)) {
        isRefused = true
        log.error({ err: error, queue }, 'fetching failed; it is repeated until it succeeds')
      }
      lost()
      pause ??= beginPause()
      return pause.over
    },
    works() {
      if (failedAt === undefined) return
      const afterMs = isRefused ? performance.now() - failedAt : undefined
      failedAt = undefined
      isRefused = false
      failures = 0
      pause?.end()
      slots.fetchingResumed(afterMs)
    },
    stop: () => pause?.end(),
  }
}
