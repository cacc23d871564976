// Combines a worker's settings with a queue's definition into the queue's retention.
import type { WorkerSettings } from '@bullpen/config'
import { type FinalStatus, milliseconds, type QueueDefinition, type QueueRetention } from '@bullpen/contract'
import { DEFAULT_KEPT_EVENTS, FINAL_STATUSES } from '@bullpen/contract/internal'
import type { Retention } from '@bullpen/engine/internal'

export type RetentionSettings = Pick<
  WorkerSettings,
  'completedRetention' | 'deadRetention' | 'cancelledRetention' | 'expiredRetention'
>

/**
 * How many tasks a queue keeps in each status, unless its definition sets another number. Completed tasks have no limit, because
 * callers look up their results. The others are kept for people, and must not fill Redis if a queue fails for days.
 */
const DEFAULT_COUNTS: Readonly<Record<FinalStatus, number | 'none'>> = {
  completed: 'none',
  dead: 100_000,
  cancelled: 100_000,
  expired: 100_000,
}

/** Returns how long a queue's ended tasks are kept. The queue's definition takes precedence over the settings. */
export function retentionOf(settings: RetentionSettings, queue: QueueRetention): Retention {
  return Object.fromEntries(
    FINAL_STATUSES.map((status) => {
      const age = settings[`${status}Retention`]
      const { ageMs = age === 'none' ? 'none' : milliseconds(age), count = DEFAULT_COUNTS[status] } =
        queue[status] ?? {}
      return [status, { ageMs: unlessNone(ageMs), count: unlessNone(count) }]
    }),
  )
}

/** Returns how long a queue's events are kept, in ms. If the queue's tasks no longer have events, the old ones are still dropped. */
export function eventsAgeOf({ events }: Pick<QueueDefinition, 'events'>): number {
  return events === false ? DEFAULT_KEPT_EVENTS.ageMs : events.ageMs
}

function unlessNone(limit: number | 'none'): number | undefined {
  return limit === 'none' ? undefined : limit
}
