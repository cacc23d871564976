// Runs the consumer and, whenever it fails, restarts it after an increasing delay.
import type { Clock } from '../ports/clock.ts'
import type { Consumer } from '../ports/consumer.ts'
import { createRestartBackoff } from '../time/restart-backoff.ts'

export interface FetchLoopHost {
  readonly clock: Clock
  /** Whether the pool is still fetching tasks. If it is not, a failed consumer is not restarted. */
  readonly isRunning: () => boolean
  /** Called when the consumer starts or restarts fetching. Returns how many slots had failed in the meantime. */
  readonly onFetching: () => number
  readonly onFailed: () => void
  readonly onRestarted: (slots: number, afterMs: number) => void
}

export interface FetchLoop {
  begin(): void
  /** Prevents further restarts. The drain stops the consumer itself. */
  end(): void
}

export function createFetchLoop(
  consumer: Consumer,
  { clock, isRunning, onFetching, onFailed, onRestarted }: FetchLoopHost,
): FetchLoop {
  const backoff = createRestartBackoff()
  let cancelRestart = (): void => {}

  const run = (): number => {
    const slots = onFetching()
    const startedAt = clock.monotonic()
    consumer.run().catch(() => restart(clock.monotonic() - startedAt))
    return slots
  }

  const restart = (ranForMs: number): void => {
    if (!isRunning()) return
    onFailed()
    const afterMs = backoff.next(ranForMs)
    cancelRestart = clock.after(afterMs, () => {
      consumer.open().then(
        () => {
          if (isRunning()) onRestarted(run(), afterMs)
        },
        () => restart(0),
      )
    })
  }

  return { begin: () => void run(), end: () => cancelRestart() }
}
