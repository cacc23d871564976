// Counts and times what happens to tasks. Two events a task pass here, so labels are resolved once for each task's name.
import type { AttemptEndState, Consequence, EndReason, TaskEvent } from '@bullpen/contract'
import type { EventSink } from '@bullpen/engine'
import type { Counter, Histogram, Registry } from 'prom-client'
import { counter, histogram } from './instruments.ts'

/** Names beyond this many share one series: a queue that foreign producers write to must not fill Prometheus. */
const MOST_TASK_NAMES = 500
const OTHER_TASKS = 'other'

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
  worker_stopped: false,
  drain: false,
  parent_closed: false,
  lock_lost: true,
  run: true,
  heartbeat: true,
  deadline: true,
} as const satisfies Readonly<Record<FailureReason, boolean>>

/** One task's own instruments: what prom-client calls children, with queue and task already filled in. */
interface TaskInstruments {
  readonly enqueued: Counter.Internal
  readonly started: Counter.Internal
  readonly duration: Histogram.Internal<string>
  readonly wait: Histogram.Internal<string>
  readonly late: Counter.Internal
  readonly ended: (state: AttemptEndState) => (verdict: Consequence) => Counter.Internal
  readonly failed: (reason: FailureReason) => Counter.Internal
}

/** Costs well under a microsecond for a start and an end together; a task's first event costs some more. */
export function taskMetrics(registry: Registry): EventSink {
  const instrumentsOf = taskInstruments(registry)
  return (event: TaskEvent) => {
    switch (event.event) {
      case 'task.enqueued':
        instrumentsOf(event.queue, event.task).enqueued.inc()
        return
      case 'attempt.started': {
        const task = instrumentsOf(event.queue, event.task)
        task.started.inc()
        task.wait.observe(event.waitedMs / 1_000)
        return
      }
      case 'attempt.ended': {
        const task = instrumentsOf(event.queue, event.task)
        task.ended(event.state)(event.verdict).inc()
        task.duration.observe(event.durationMs / 1_000)
        if (event.state !== 'DONE_SUCCESS') {
          const reason = event.reason ?? 'declared'
          if (IS_FAILURE[reason]) task.failed(reason).inc()
        }
        return
      }
      case 'attempt.late':
        instrumentsOf(event.queue, event.task).late.inc()
        return
      case 'pool.state':
        // pools are read at scrape: see Telemetry.watchPool
        return
      default:
        event satisfies never
    }
  }
}

function taskInstruments(registry: Registry): (queue: string, task: string) => TaskInstruments {
  const enqueued = counter(registry, 'bullpen_tasks_enqueued_total')
  const started = counter(registry, 'bullpen_attempts_started_total')
  const ended = counter(registry, 'bullpen_attempts_ended_total')
  const duration = histogram(registry, 'bullpen_attempt_duration_seconds')
  const wait = histogram(registry, 'bullpen_task_wait_seconds')
  const failed = counter(registry, 'bullpen_attempt_failures_total')
  const late = counter(registry, 'bullpen_late_results_total')

  let names = 0
  const make = (queue: string, asked: string): TaskInstruments => {
    const task = ++names > MOST_TASK_NAMES ? OTHER_TASKS : asked
    const labels = { queue, task }
    return {
      enqueued: enqueued.labels(labels),
      started: started.labels(labels),
      duration: duration.labels(labels),
      wait: wait.labels(labels),
      late: late.labels(labels),
      ended: remembered((state) => remembered((verdict) => ended.labels({ ...labels, state, verdict }))),
      failed: remembered((reason) => failed.labels({ ...labels, reason })),
    }
  }
  const byQueue = remembered((queue: string) => remembered((task: string) => make(queue, task), MOST_TASK_NAMES))
  return (queue, task) => byQueue(queue)(task)
}

/** Makes a value once for each key; beyond `most` keys, every time. A Map holds it: joining keys costs more than two look-ups. */
function remembered<K, V>(make: (key: K) => V, most = Number.POSITIVE_INFINITY): (key: K) => V {
  const made = new Map<K, V>()
  return (key) => {
    let value = made.get(key)
    if (value === undefined) {
      value = make(key)
      if (made.size < most) made.set(key, value)
    }
    return value
  }
}
