// Publishes the number of ended tasks, which Redis knows for the whole fleet, as a counter of this process.
import type { Registry } from 'prom-client'
import { counter } from './instruments.ts'

/** The totals of a queue at one moment. `accepted` falls only if Redis has lost data. */
interface Totals {
  readonly accepted: number
  readonly ended: number
}

interface Published {
  readonly value: number
  readonly accepted: number
  /** How many of the ended tasks Redis has forgotten since this process read them. */
  readonly lost: number
}

/**
 * Prometheus takes a counter that has fallen for one that has started at 0 again, and would count the whole total once more. The published
 * value therefore never falls while the process lives:
 *
 * - If Redis has lost data, for example in a failover, the counter continues from the value that it had.
 * - While plain BullMQ has added tasks that the leader has not counted yet, the total is too low, and the counter keeps its value.
 */
export function endedTasksCounter(registry: Registry) {
  const metric = counter(registry, 'bullpen_queue_tasks_ended_total')
  const published = new Map<string, Published>()
  return {
    /** Removes all values before a scrape. {@link set} continues them. */
    reset: () => metric.reset(),
    set(queue: string, { accepted, ended }: Totals): void {
      const before = published.get(queue) ?? { value: 0, accepted: 0, lost: 0 }
      const lost = accepted < before.accepted ? before.value - ended : before.lost
      const value = Math.max(before.value, ended + lost)
      published.set(queue, { value, accepted, lost })
      metric.inc({ queue }, value)
    },
  }
}
