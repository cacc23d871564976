// Waits at the API by long polls. A wait goes on after polls that broke, such as at a gateway that ends each request after a few seconds.
import { milliseconds } from '@bullpen/contract'
import { MAX_WAIT_S, type Try } from '@bullpen/contract/internal'
import type { Repeat, Repeatability } from '../repetition.ts'
import { ResultTimeoutError } from '../result-timeout-error.ts'
import type { WaitOptions } from '../task-handle.ts'
import { pauseFor, timeLimit } from '../time-limit.ts'

/** The pause before waiting again if the API ended a wait early, as it does when it shuts down. */
const REPEAT_WAIT_AFTER_MS = 100

export interface LongPoll<T> {
  readonly repeat: Repeat
  /** Defaults to `look-up`. */
  readonly repeatability?: Repeatability
  /** Prepares a call that returns once the wait is over, or `waitMs` have elapsed. */
  readonly poll: (waitMs: number) => Try<T>
  readonly isOver: (found: T) => boolean
  /** How long to wait at most, in ms: one poll, unless it breaks. By default, polls of 30 s until the wait is over. */
  readonly forMs?: number
  readonly signal: AbortSignal | undefined
}

/**
 * Polls until the wait is over or `forMs` have elapsed, and returns what the last poll has found. A poll that broke is repeated without a
 * wait: its response arrives, however soon something cuts connections, and shows that the API still responds. The time for which calls are
 * repeated then starts again with the next poll.
 */
export async function pollUntil<T>(options: LongPoll<T>): Promise<T> {
  const { repeat, repeatability = 'look-up', poll, isOver, forMs, signal } = options
  const beganAt = performance.now()
  const leftMs = (): number => (forMs === undefined ? MAX_WAIT_S * 1_000 : beganAt + forMs - performance.now())
  for (let isFirst = true; ; isFirst = false) {
    const waitMs = isFirst && forMs !== undefined ? forMs : Math.round(Math.max(0, leftMs()))
    let tries = 0
    const pollOnce: Try<T> = (current) => poll(tries++ === 0 ? waitMs : 0)(current)
    const found = await repeat(repeatability, pollOnce, signal)
    const hasWaited = forMs !== undefined && tries === 1
    if (isOver(found) || hasWaited || leftMs() <= 0) return found
    await pauseFor(Math.min(REPEAT_WAIT_AFTER_MS, leftMs()), signal)
  }
}

/** Polls until what has this id has ended. @throws ResultTimeoutError if `timeout` expires first. */
export async function pollUntilEnded<T>(
  what: 'task' | 'group' | 'run',
  id: string,
  options: Pick<LongPoll<T>, 'repeat' | 'poll' | 'isOver'>,
  { timeout = 'none', signal }: WaitOptions,
): Promise<T> {
  if (timeout === 'none') return pollUntil({ ...options, signal })
  const late = () => new ResultTimeoutError(id, timeout, what)
  const limit = timeLimit(milliseconds(timeout, 'timeout'), signal, late)
  try {
    return await pollUntil({ ...options, signal: limit.signal })
  } finally {
    limit.stop()
  }
}
