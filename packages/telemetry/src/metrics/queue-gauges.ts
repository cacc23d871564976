// The values of queues that every API process reads at each scrape for the whole fleet: gauges, and the counters of ended and
// recovered tasks.
import type { BreakerState, QueueLimits, TaskStatus } from '@bullpen/contract'
import { BREAKER_STATES, TASK_STATUSES } from '@bullpen/contract/internal'
import type { Registry } from 'prom-client'
import { fleetCounter } from './fleet-counter.ts'
import { gauge } from './instruments.ts'

/** The totals of a queue that are published. */
interface Totals {
  readonly bytes: number
  readonly accepted: number
  readonly ended: number
  readonly recovered: number
  readonly unaccounted: number
  readonly drift: number
  /** `oldestAt` is in ms since 1970. */
  readonly outbox: { readonly entries: number; readonly oldestAt: number | undefined }
}

/** What is published of the head of a queue. Times are in ms since 1970. They are undefined if there is no such task. */
interface Head {
  /** The waiting task that has been ready for the longest time. */
  readonly oldest: { readonly readyAt: number } | undefined
  /** Since when the waiting task that starts next has been ready. */
  readonly nextReadyAt: number | undefined
  readonly blockedTasks: number
  /** The blocked task that has been ready for the longest time. */
  readonly oldestBlocked: { readonly readyAt: number } | undefined
  readonly isPaused: boolean
  readonly isDraining: boolean
  /** The BullMQ Workers without Bullpen's backend that use the queue: some, if their names and addresses are not known. */
  readonly unattached?: { readonly workers: readonly string[] } | undefined
}

/** Call each method from `onScrape` at every scrape, because a gauge that has not been set is omitted instead of shown as it was. */
export interface QueueGauges {
  /** Sets the number of tasks in each status. */
  queueTasks(queue: string, counts: Readonly<Partial<Record<TaskStatus, number>>>): void
  /**
   * Sets the gauges for the bytes, the counts and the outbox, and the counters of ended and recovered tasks, from the broker's
   * totals. `now` is the current time in ms since 1970.
   */
  queueTotals(queue: string, totals: Totals, now: number): void
  /**
   * Sets how long tasks have been waiting, how many are blocked, whether the queue is paused or draining, and how many Workers use it that
   * were not attached. `now` is the current time in ms since 1970, by the same clock as the times of the head.
   */
  queueHead(queue: string, head: Head, now: number): void
  /** Sets the queue's limits. The gauges of limits that do not apply are omitted. */
  queueLimits(queue: string, limits: QueueLimits): void
  /** Sets the states of the queue's circuit breakers. */
  breakers(queue: string, all: readonly { readonly service: string; readonly state: BreakerState }[]): void
}

/** Also returns `reset`, which removes all values before a scrape. */
export function queueGauges(registry: Registry): { readonly set: QueueGauges; reset(): void } {
  const tasks = gauge(registry, 'bullpen_queue_tasks')
  const bytes = gauge(registry, 'bullpen_queue_bytes')
  const maxTasks = gauge(registry, 'bullpen_queue_limit_tasks')
  const maxBytes = gauge(registry, 'bullpen_queue_limit_bytes')
  const oldest = gauge(registry, 'bullpen_queue_oldest_seconds')
  const next = gauge(registry, 'bullpen_queue_next_task_seconds')
  const blocked = gauge(registry, 'bullpen_queue_blocked_tasks')
  const oldestBlocked = gauge(registry, 'bullpen_queue_oldest_blocked_seconds')
  const paused = gauge(registry, 'bullpen_queue_paused')
  const draining = gauge(registry, 'bullpen_queue_draining')
  const unattached = gauge(registry, 'bullpen_unattached_workers')
  const breakers = gauge(registry, 'bullpen_breaker_state')
  const unaccounted = gauge(registry, 'bullpen_unaccounted_tasks')
  const repairs = gauge(registry, 'bullpen_index_repairs')
  const outboxEntries = gauge(registry, 'bullpen_outbox_entries')
  const outboxOldest = gauge(registry, 'bullpen_outbox_oldest_seconds')
  const ended = fleetCounter(registry, 'bullpen_queue_tasks_ended_total')
  const recovered = fleetCounter(registry, 'bullpen_queue_tasks_recovered_total')
  const limits = [maxTasks, maxBytes]
  const ofHead = [oldest, next, blocked, oldestBlocked, paused, draining, unattached]
  const all = [
    tasks,
    ended,
    recovered,
    bytes,
    ...limits,
    ...ofHead,
    breakers,
    unaccounted,
    repairs,
    outboxEntries,
    outboxOldest,
  ]
  return {
    reset: () => {
      for (const each of all) each.reset()
    },
    set: {
      queueTasks(queue, counts) {
        for (const status of TASK_STATUSES) {
          const count = counts[status]
          if (count !== undefined) tasks.set({ queue, status }, count)
        }
      },
      queueTotals(queue, totals, now) {
        bytes.set({ queue }, totals.bytes)
        const { accepted } = totals
        ended.set(queue, { total: totals.ended, accepted })
        recovered.set(queue, { total: totals.recovered, accepted })
        unaccounted.set({ queue }, totals.unaccounted)
        repairs.set({ queue }, totals.drift)
        const { entries, oldestAt = now } = totals.outbox
        outboxEntries.set({ queue }, entries)
        outboxOldest.set({ queue }, Math.max(0, now - oldestAt) / 1_000)
      },
      queueHead(queue, head, now) {
        const secondsSince = (readyAt = now): number => Math.max(0, now - readyAt) / 1_000
        oldest.set({ queue }, secondsSince(head.oldest?.readyAt))
        next.set({ queue }, secondsSince(head.nextReadyAt))
        blocked.set({ queue }, head.blockedTasks)
        oldestBlocked.set({ queue }, secondsSince(head.oldestBlocked?.readyAt))
        paused.set({ queue }, head.isPaused ? 1 : 0)
        draining.set({ queue }, head.isDraining ? 1 : 0)
        unattached.set({ queue }, head.unattached === undefined ? 0 : Math.max(1, head.unattached.workers.length))
      },
      queueLimits(queue, limits) {
        if (limits.maxTasks !== undefined) maxTasks.set({ queue }, limits.maxTasks)
        if (limits.maxBytes !== undefined) maxBytes.set({ queue }, limits.maxBytes)
      },
      breakers(queue, all) {
        for (const { service, state: current } of all) {
          for (const state of BREAKER_STATES) breakers.set({ queue, service, state }, state === current ? 1 : 0)
        }
      },
    },
  }
}
