// Remembers the cancellations that were published for tasks that are not running in this process.
//
// When a task's cancellation is published, the task may still be on its way from Redis to this process, and must then not start.
// A cancellation is remembered only as long as a task can be on its way. It does not apply to a task that was retried by request
// since, which has the same id.
import { type FetchedTask, retriedAtOf } from '@bullpen/engine/internal'

/**
 * How long a cancellation is remembered, in ms. It must outlast a fetch. A task whose fetch takes longer than its lock (5 s) never
 * starts, and the leader repeats the cancellation of a running task every 1.5 s until the task ends.
 */
export const REMEMBERED_MS = 10_000

/** How many cancellations are remembered. The oldest ones are dropped first. */
const REMEMBERED_CANCELS = 1_000

export interface PublishedCancel {
  /** Who requested the cancellation, or '' if unknown. */
  readonly by: string
  /** When the cancelled task had last been retried by request, in ms since 1970, or 0 if never. */
  readonly retriedAt: number
}

export interface RememberedCancels {
  /** Remembers a cancellation. `now` is the current time on a monotonic clock, in ms. */
  add(id: string, cancel: PublishedCancel, now: number): void
  /**
   * Returns who requested this task's cancellation ('' if unknown), and forgets the cancellation. Returns undefined if none is
   * remembered, or if the task was retried by request since.
   */
  take(task: Pick<FetchedTask, 'id' | 'envelope'>, now: number): string | undefined
}

export function createRememberedCancels(): RememberedCancels {
  /** In the order of their times. */
  const cancels = new Map<string, PublishedCancel & { readonly until: number }>()
  const dropOldest = (now: number): void => {
    for (const [id, { until }] of cancels) {
      if (now < until && cancels.size <= REMEMBERED_CANCELS) return
      cancels.delete(id)
    }
  }
  return {
    add(id, cancel, now) {
      // A repeated cancellation moves to the end.
      cancels.delete(id)
      cancels.set(id, { ...cancel, until: now + REMEMBERED_MS })
      dropOldest(now)
    },
    take({ id, envelope }, now) {
      // Every fetched task takes this path, and there is almost never anything to remember.
      if (cancels.size === 0) return undefined
      dropOldest(now)
      const found = cancels.get(id)
      cancels.delete(id)
      return found?.retriedAt === (retriedAtOf(envelope) ?? 0) ? found.by : undefined
    },
  }
}
