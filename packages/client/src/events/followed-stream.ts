// Follows a stream of events: connects again when the connection is lost, and resumes after the last event.
import type { EventTry, TransportEvent } from '@bullpen/contract/internal'
import { ProblemError } from '@bullpen/contract/internal'
import { mayRepeat, waitBeforeRetry } from '../repetition.ts'
import { pauseFor } from '../time-limit.ts'

export interface FollowOptions {
  readonly signal: AbortSignal | undefined
  /** How long the stream may be unavailable, in ms, before the failure is thrown. */
  readonly retryForMs: number
  /** Returns whether a stream that ends after this event is complete. Otherwise, the client connects again. */
  readonly isLast: (event: FollowedEvent) => boolean
}

export type FollowedEvent = Exclude<NonNullable<TransportEvent['event']>, { readonly type: 'disconnected' }>

const INITIAL_DELAY_MS = 100
const MAX_DELAY_MS = 5_000

/**
 * Yields the events of a stream, each of them once. The delay before a new connection starts at 100 ms and doubles up to 5 s,
 * with a jitter of 20%, and is never shorter than the API requests. `retryForMs` counts from the first failure since the
 * transport received something, such as a heartbeat. The last try begins when this time is over, or before, if the API rejects
 * a try and requests a delay that would end later.
 *
 * @throws ProblemError if the stream was rejected, or has been unavailable for `retryForMs`, and the signal's reason if it aborts.
 */
export async function* followStream(
  open: EventTry,
  { signal, retryForMs, isLast }: FollowOptions,
): AsyncGenerator<FollowedEvent, void, void> {
  let after: string | undefined
  let delay = INITIAL_DELAY_MS
  let giveUpAt: number | undefined
  for (;;) {
    signal?.throwIfAborted()
    let retryMs = 0
    let waitMs: number | undefined
    let last: FollowedEvent | undefined
    try {
      for await (const received of open(after, signal)) {
        giveUpAt = undefined
        delay = INITIAL_DELAY_MS
        retryMs = received.retryMs ?? retryMs
        const { event } = received
        if (event?.type === 'disconnected') {
          last = undefined
          break
        }
        after = received.id ?? after
        if (event === undefined) continue
        last = event
        yield event
      }
      if (last !== undefined && isLast(last)) return
    } catch (error) {
      signal?.throwIfAborted()
      if (!(error instanceof ProblemError) || !mayRepeat('look-up', error)) throw error
      giveUpAt ??= performance.now() + retryForMs
      const delayMs = Math.max(withJitter(delay), retryMs)
      waitMs = waitBeforeRetry({ delayMs, requestedMs: error.retryAfterMs, leftMs: giveUpAt - performance.now() })
      if (waitMs === undefined) throw error
    }
    await pauseFor(waitMs ?? Math.max(withJitter(delay), retryMs), signal)
    delay = Math.min(delay * 2, MAX_DELAY_MS)
  }
}

function withJitter(ms: number): number {
  return ms * (0.8 + 0.4 * Math.random())
}
