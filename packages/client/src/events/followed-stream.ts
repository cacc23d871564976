// Follows a stream of events: connects again when the connection is lost, and resumes after the last event.
import type { EventTry, TransportEvent } from '@bullpen/contract/internal'
import { ProblemError } from '@bullpen/contract/internal'
import {
  INITIAL_DELAY_MS,
  isSilent,
  limitOfRepeat,
  mayRepeat,
  nextDelay,
  noResponse,
  waitBeforeRetry,
  withJitter,
} from '../repetition.ts'
import { pauseFor, timeLimit } from '../time-limit.ts'

export interface FollowOptions {
  readonly signal: AbortSignal | undefined
  /** How long the stream may be unavailable, in ms, before the failure is thrown. */
  readonly retryForMs: number
  /** Returns whether a stream that ends after this event is complete. Otherwise, the client connects again. */
  readonly isLast: (event: FollowedEvent) => boolean
}

export type FollowedEvent = Exclude<NonNullable<TransportEvent['event']>, { readonly type: 'disconnected' }>

/**
 * Yields the events of a stream, each of them once. The delay before each new connection, and the time limit of a connection on which
 * nothing arrives, are those of repeated calls (../repetition.ts). `retryForMs` counts from the first failure since the transport received
 * something, such as a heartbeat or what the API sends at the beginning of each stream. The last try begins when this time is over, or
 * before, if the API rejects a try and requests a delay that would end later.
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
  let wasSilent = false
  for (;;) {
    signal?.throwIfAborted()
    let receivedAt = performance.now()
    const leftMs = giveUpAt === undefined ? 0 : giveUpAt - receivedAt
    const limitMs = wasSilent ? limitOfRepeat({ retryForMs, leftMs }) : undefined
    const limit = limitMs === undefined ? undefined : timeLimit(limitMs, signal, () => noResponse(limitMs))
    let retryMs = 0
    let waitMs: number | undefined
    let last: FollowedEvent | undefined
    try {
      for await (const received of open(after, limit?.signal ?? signal)) {
        limit?.lift()
        receivedAt = performance.now()
        wasSilent = false
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
        // The caller may have taken its time.
        receivedAt = performance.now()
      }
      if (last !== undefined && isLast(last)) return
    } catch (error) {
      signal?.throwIfAborted()
      if (!(error instanceof ProblemError) || !mayRepeat('look-up', error)) throw error
      wasSilent ||= isSilent(error, performance.now() - receivedAt, retryForMs)
      giveUpAt ??= performance.now() + retryForMs
      const delayMs = Math.max(withJitter(delay), retryMs)
      waitMs = waitBeforeRetry({ delayMs, requestedMs: error.retryAfterMs, leftMs: giveUpAt - performance.now() })
      if (waitMs === undefined) throw error
    } finally {
      limit?.stop()
    }
    await pauseFor(waitMs ?? Math.max(withJitter(delay), retryMs), signal)
    delay = nextDelay(delay)
  }
}
