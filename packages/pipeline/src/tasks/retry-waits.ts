// Waits for the times at which tasks of a run are started again, within the retry budgets of their definitions.
import { type AttemptResult, type Clock, RetryBudgets } from '@bullpen/engine/internal'

export interface RetryWaits {
  /** Takes the end of an attempt into account, and resolves when its task may start again, or when the signal aborts. */
  afterAttempt(result: AttemptResult, signal: AbortSignal): Promise<void>
  /** Resolves when no handler throttles the queue any more, or when the signal aborts. Returns undefined if none does. */
  untilReleased(queue: string, signal: AbortSignal): Promise<void> | undefined
}

/** The budgets count only the attempts of this process. */
export function createRetryWaits(clock: Clock): RetryWaits {
  /** Moves the start of each task that waits. */
  const waiting = new Map<string, (startsAt: number) => void>()
  const budgets = new RetryBudgets(
    ({ id }) => waiting.has(id),
    ({ id, startsAt }) => waiting.get(id)?.(startsAt),
  )
  /** Until when a handler throttles each queue, in ms since 1970. */
  const throttled = new Map<string, number>()

  const waitUntil = async (startsAt: number, signal: AbortSignal, id?: string): Promise<void> => {
    if (signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const end = (): void => resolve()
    const timer = clock.timer(end)
    const start = (at: number): void => timer.set(Math.max(0, at - clock.now()))
    if (id !== undefined) waiting.set(id, start)
    signal.addEventListener('abort', end)
    start(startsAt)
    await promise
    timer.close()
    signal.removeEventListener('abort', end)
    if (id !== undefined) waiting.delete(id)
  }

  return {
    async afterAttempt(result, signal) {
      const { verdict, event } = result
      const now = clock.now()
      const retryAt = budgets.ended(result, now)
      if (retryAt !== undefined) await waitUntil(retryAt, signal, event.id)
      else if (verdict.kind === 'snoozed') await waitUntil(now + verdict.delayMs, signal)
      else if (verdict.kind === 'requeued' && verdict.throttleMs !== undefined) {
        throttled.set(event.queue, Math.max(throttled.get(event.queue) ?? 0, now + verdict.throttleMs))
      }
    },
    untilReleased(queue, signal) {
      const until = throttled.get(queue)
      return until === undefined || until <= clock.now() ? undefined : waitUntil(until, signal)
    },
  }
}
