// Counts the tasks that have a service-level objective, and those of them that started late or expired.
//
// The counters begin at 0 when the process starts, not with the first late task: Prometheus's rate() does not see the increment with
// which a series appears.
import type { Slo } from '@bullpen/contract'
import type { Registry } from 'prom-client'
import { fastCounter, gauge } from './instruments.ts'

/** What counts the tasks of one definition. */
export interface SloSeries {
  /** Call it for the first start of each task. `waitedMs` is the time since the task was ready. */
  started(waitedMs: number): void
  /** Call it for each task that has expired before its first attempt. */
  expired(): void
}

export interface SloMetrics {
  /** Publishes an objective, and counts the definition's tasks from now on. */
  declare(queue: string, task: string, slo: Slo): SloSeries
  /** Returns the metrics in Prometheus's text format. */
  exposition(): string
}

export function sloMetrics(registry: Registry): SloMetrics {
  const startWithin = gauge(registry, 'bullpen_slo_start_within_seconds')
  const objectives = gauge(registry, 'bullpen_slo_objective_ratio')
  const tasks = fastCounter('bullpen_slo_tasks_total')
  const lateTasks = fastCounter('bullpen_slo_late_tasks_total')
  return {
    declare(queue, task, { startWithinMs, objective }) {
      const labels = { queue, task }
      startWithin.set(labels, startWithinMs / 1_000)
      objectives.set(labels, objective)
      const all = tasks.seriesFromZero(labels)
      const late = lateTasks.seriesFromZero(labels)
      return {
        started(waitedMs) {
          all.count++
          if (waitedMs > startWithinMs) late.count++
        },
        expired() {
          all.count++
          late.count++
        },
      }
    },
    exposition: () => `${tasks.exposition()}\n\n${lateTasks.exposition()}\n`,
  }
}
