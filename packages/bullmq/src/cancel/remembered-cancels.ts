// Remembers the cancels by id that were published for tasks that are not running in this process.
//
// A task that this process has fetched may still be on its way when its cancel is published. The task must then not start. A cancel
// is not remembered for longer than a task can be on its way, because a task that an operator retries later has the same id.

/**
 * How long a cancel is remembered, in ms. A task whose fetch takes longer than its lock lasts (5 s) is not started at all. The
 * leader also repeats a cancel every 1.5 s as long as its task has not ended.
 */
export const REMEMBERED_MS = 10_000

/** How many cancels are remembered. The oldest ones are dropped first. */
const REMEMBERED_CANCELS = 1_000

export interface RememberedCancels {
  /** Remembers a cancel at the time `now`, on a monotonic clock in ms. */
  add(id: string, by: string, now: number): void
  /** Returns who requested the cancel of this task ('' if unknown) and forgets the cancel. Returns undefined if there is none. */
  take(id: string, now: number): string | undefined
}

export function createRememberedCancels(): RememberedCancels {
  /** In the order of their times. */
  const cancels = new Map<string, { readonly by: string; readonly until: number }>()
  const dropOldest = (now: number): void => {
    for (const [id, { until }] of cancels) {
      if (now < until && cancels.size <= REMEMBERED_CANCELS) return
      cancels.delete(id)
    }
  }
  return {
    add(id, by, now) {
      // A repeated cancel moves to the end.
      cancels.delete(id)
      cancels.set(id, { by, until: now + REMEMBERED_MS })
      dropOldest(now)
    },
    take(id, now) {
      // Almost always, nothing is remembered. Every task that is fetched gets here.
      if (cancels.size === 0) return undefined
      dropOldest(now)
      const by = cancels.get(id)?.by
      cancels.delete(id)
      return by
    },
  }
}
