// Publishes a total that Redis keeps for the whole fleet, one for each queue, as a counter of this process.
import type { Registry } from 'prom-client'
import { counter } from './instruments.ts'

/** A queue's total at one moment. `accepted`, the number of tasks that were ever added, falls only if Redis has lost data. */
interface Reading {
  readonly total: number
  readonly accepted: number
}

/** The counters whose values are such totals. */
type FleetCounterName = 'bullpen_queue_tasks_ended_total' | 'bullpen_queue_tasks_recovered_total'

interface Published {
  readonly value: number
  readonly accepted: number
  /** How much of the total Redis has forgotten since this process read it. */
  readonly lost: number
}

/**
 * Prometheus takes a counter that has fallen for one that has started at 0 again, and would count the whole total once more. The published
 * value therefore never falls while the process lives:
 *
 * - If Redis has lost data, for example in a failover, the counter continues from the value that it had.
 * - While plain BullMQ has added tasks that the leader has not counted yet, the total of ended tasks is too low, and the counter keeps its
 *   value.
 */
export function fleetCounter(registry: Registry, name: FleetCounterName) {
  const metric = counter(registry, name)
  const published = new Map<string, Published>()
  return {
    /** Removes all values before a scrape. {@link set} continues them. */
    reset: () => metric.reset(),
    set(queue: string, { total, accepted }: Reading): void {
      const before = published.get(queue) ?? { value: 0, accepted: 0, lost: 0 }
      const lost = accepted < before.accepted ? before.value - total : before.lost
      const value = Math.max(before.value, total + lost)
      published.set(queue, { value, accepted, lost })
      metric.inc({ queue }, value)
    },
  }
}
