// Counts and times what happens to tasks. Two events a task pass here, so labels are resolved once for each task's name.
import type { AttemptEndState, EndReason, TaskEvent, VerdictKind } from '@bullpen/contract'
import type { EventSink } from '@bullpen/engine'
import type { Registry } from 'prom-client'
import type { Count, Distribution } from './fast-metrics.ts'
import { tallyCounter, tallyHistogram } from './instruments.ts'

/** Names beyond this many share one series: a queue that foreign producers write to must not fill Prometheus. */
const MOST_TASK_NAMES = 500
const OTHER_TASKS = 'other'
/** As Prometheus has it, a label that is empty is absent. */
const NO_TASK = ''

export type FailureReason = EndReason | 'declared'

/** Failures are what an engineer may have to look at; cancels, stops and drains are decisions. */
export const IS_FAILURE = {
  declared: true,
  unexpected_error: true,
  invalid_output: true,
  escaped_error: true,
  isolate_died: true,
  out_of_memory: true,
  process_lost: true,
  cancelled: false,
  slot_stopped: false,
  queue_shutdown: false,
  drain: false,
  parent_closed: false,
  lock_lost: true,
  run_timeout: true,
  heartbeat_timeout: true,
  total_timeout: true,
  queue_timeout: false,
  snoozed: false,
  rate_limited: false,
} as const satisfies Readonly<Record<FailureReason, boolean>>

/** One task's own series, with queue and task already filled in. */
interface TaskSeries {
  readonly enqueued: Count
  readonly started: Count
  readonly duration: Distribution
  readonly wait: Distribution
  readonly late: Count
  readonly expired: Count
  readonly cancelled: Count
  /** The usual end, of {@link ended}. */
  readonly completed: Count
  readonly ended: (state: AttemptEndState) => (verdict: VerdictKind) => Count
  readonly failed: (reason: FailureReason) => Count
}

/** Costs about 0.15 µs for a start and an end together; a task's first event costs some more. */
export function taskMetrics(registry: Registry): EventSink {
  const seriesOf = taskSeries(registry)
  const restarts = tallyCounter(registry, 'bullpen_slots_restarted_total')
  const restarted = remembered((queue: string) => restarts.series({ queue }))
  const replacements = tallyCounter(registry, 'bullpen_isolates_replaced_total')
  const replaced = remembered((isolation: string) => replacements.series({ isolation }))
  const blocks = tallyCounter(registry, 'bullpen_event_loop_stalls_total')
  const blocked = remembered((task: string) => blocks.series({ task }))
  return (event: TaskEvent) => {
    switch (event.event) {
      case 'task.enqueued':
        seriesOf(event.queue, event.task).enqueued.count++
        return
      case 'attempt.started': {
        const task = seriesOf(event.queue, event.task)
        task.started.count++
        if (event.waitedMs !== undefined) task.wait.observe(event.waitedMs / 1_000)
        return
      }
      case 'attempt.ended': {
        const task = seriesOf(event.queue, event.task)
        if (event.verdict === 'completed') task.completed.count++
        else task.ended(event.state)(event.verdict).count++
        task.duration.observe(event.durationMs / 1_000)
        if (event.verdict === 'expired') task.expired.count++
        if (event.verdict === 'cancelled') task.cancelled.count++
        if (event.state !== 'DONE_SUCCESS') {
          const reason = event.reason ?? 'declared'
          if (IS_FAILURE[reason]) task.failed(reason).count++
        }
        return
      }
      case 'attempt.late':
        seriesOf(event.queue, event.task).late.count++
        return
      case 'task.cancelled':
        seriesOf(event.queue, event.task).cancelled.count++
        return
      case 'task.expired':
        seriesOf(event.queue, event.task).expired.count++
        return
      case 'slots.restarted':
        restarted(event.queue).count += event.slots
        return
      case 'isolate.replaced':
        replaced(event.isolation).count++
        return
      case 'event_loop.stalled':
        // Attempts run only for tasks of the catalogue, so that its names bound the series.
        blocked(event.task ?? NO_TASK).count++
        return
      case 'pool.state':
        // pools are read at scrape: see Telemetry.watchPool
        return
      default:
        event satisfies never
    }
  }
}

function taskSeries(registry: Registry): (queue: string, task: string) => TaskSeries {
  const enqueued = tallyCounter(registry, 'bullpen_tasks_enqueued_total')
  const started = tallyCounter(registry, 'bullpen_attempts_started_total')
  const ended = tallyCounter(registry, 'bullpen_attempts_ended_total')
  const duration = tallyHistogram(registry, 'bullpen_attempt_duration_seconds')
  const wait = tallyHistogram(registry, 'bullpen_task_wait_seconds')
  const failed = tallyCounter(registry, 'bullpen_attempt_failures_total')
  const late = tallyCounter(registry, 'bullpen_late_results_total')
  const cancelled = tallyCounter(registry, 'bullpen_tasks_cancelled_total')
  const expired = tallyCounter(registry, 'bullpen_tasks_expired_total')

  const make = (queue: string, task: string): TaskSeries => {
    const labels = { queue, task }
    return {
      enqueued: enqueued.series(labels),
      started: started.series(labels),
      duration: duration.series(labels),
      wait: wait.series(labels),
      late: late.series(labels),
      expired: expired.series(labels),
      cancelled: cancelled.series(labels),
      completed: ended.series({ ...labels, state: 'DONE_SUCCESS', verdict: 'completed' }),
      ended: remembered((state) => remembered((verdict) => ended.series({ ...labels, state, verdict }))),
      failed: remembered((reason) => failed.series({ ...labels, reason })),
    }
  }
  const byQueue = remembered((queue: string) => {
    const byTask = new Map<string, TaskSeries>()
    const firstOf = (task: string): TaskSeries => {
      const name = byTask.size < MOST_TASK_NAMES ? task : OTHER_TASKS
      const series = byTask.get(name) ?? make(queue, name)
      byTask.set(name, series)
      return series
    }
    return (task: string) => byTask.get(task) ?? firstOf(task)
  })
  // Tasks come in runs of their like: two comparisons then do for four look-ups.
  let [lastQueue, lastTask] = ['', '']
  let last: TaskSeries | undefined
  return (queue, task) => {
    if (last === undefined || task !== lastTask || queue !== lastQueue) {
      last = byQueue(queue)(task)
      lastQueue = queue
      lastTask = task
    }
    return last
  }
}

/** Makes a value once for each key. A Map holds it: joining two keys into one costs more than two look-ups. */
function remembered<K, V>(make: (key: K) => V): (key: K) => V {
  const made = new Map<K, V>()
  return (key) => {
    let value = made.get(key)
    if (value === undefined) {
      value = make(key)
      made.set(key, value)
    }
    return value
  }
}
