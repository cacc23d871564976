// Every metric that Bullpen publishes: the contract that dashboards, alerts and autoscalers rely on.

export interface MetricRow {
  readonly type: 'counter' | 'gauge' | 'histogram'
  /** The base unit of its values. */
  readonly unit: 'seconds' | 'tasks' | 'attempts' | 'workers' | 'requests' | 'reads' | 'blocks' | 'flag'
  readonly labels: readonly string[]
  readonly help: string
  /** Upper bounds; for histograms. */
  readonly buckets?: readonly number[]
}

/** 0.5 ms to 10 min: from a short task in memory to a long one at the usual limit. */
const RUN_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
]
/** 1 ms to an hour: a backlog lasts longer than any task in it. */
const WAIT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600]
/** 1 ms to 30 s, the longest that a look-up may wait. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/**
 * Names end in their unit, and in `_total` only when they are counters. Every label's values are from a closed list or
 * from the catalogue, so that a process publishes a bounded number of series.
 */
export const METRICS = {
  bullpen_tasks_enqueued_total: {
    type: 'counter',
    unit: 'tasks',
    labels: ['queue', 'task'],
    help: 'Tasks that this process stored in a queue.',
  },
  bullpen_attempts_started_total: {
    type: 'counter',
    unit: 'attempts',
    labels: ['queue', 'task'],
    help: 'Handlers that this process started.',
  },
  bullpen_attempts_ended_total: {
    type: 'counter',
    unit: 'attempts',
    labels: ['queue', 'task', 'state', 'verdict'],
    help: "Attempts that ended, by the attempt's state and by what followed for the task.",
  },
  bullpen_attempt_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: ['queue', 'task'],
    help: "From a handler's start to the end of its attempt.",
    buckets: RUN_SECONDS,
  },
  bullpen_task_wait_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: ['queue', 'task'],
    help: 'From the moment a task was ready to its first start.',
    buckets: WAIT_SECONDS,
  },
  bullpen_attempt_failures_total: {
    type: 'counter',
    unit: 'attempts',
    labels: ['queue', 'task', 'reason'],
    help: 'Attempts that failed, by reason; cancels, stops and drains are decisions and not counted here.',
  },
  bullpen_late_results_total: {
    type: 'counter',
    unit: 'attempts',
    labels: ['queue', 'task'],
    help: 'Handlers that came back after their attempt had ended; their results were dropped.',
  },
  bullpen_isolates_replaced_total: {
    type: 'counter',
    unit: 'workers',
    labels: ['isolation'],
    help: 'Threads and child processes that ended for another reason than having nothing to do.',
  },
  bullpen_tasks_cancelled_total: {
    type: 'counter',
    unit: 'tasks',
    labels: ['queue', 'task'],
    help: 'Tasks that were cancelled, running or not.',
  },
  bullpen_tasks_expired_total: {
    type: 'counter',
    unit: 'tasks',
    labels: ['queue', 'task'],
    help: 'Tasks that waited longer than their queue timeout and never started.',
  },
  bullpen_slots_restarted_total: {
    type: 'counter',
    unit: 'workers',
    labels: ['queue'],
    help: 'Workers that went on after what brings them tasks had failed.',
  },
  bullpen_slot_state: {
    type: 'gauge',
    unit: 'workers',
    labels: ['queue', 'state'],
    help: 'Workers of this process in each state.',
  },
  bullpen_stuck_handlers: {
    type: 'gauge',
    unit: 'attempts',
    labels: ['queue'],
    help: 'Handlers that go on although their attempt has ended and their slot is free.',
  },
  bullpen_event_loop_stalls_total: {
    type: 'counter',
    unit: 'blocks',
    labels: ['task'],
    help: 'Times that the event loop stood still for longer than eventLoopStallWarning, by the task that held it; empty where none did.',
  },
  bullpen_pool_slots: {
    type: 'gauge',
    unit: 'workers',
    labels: ['queue'],
    help: "Workers of this process's pool: the most attempts that it runs at once.",
  },
  bullpen_pool_slots_busy: {
    type: 'gauge',
    unit: 'workers',
    labels: ['queue'],
    help: "Workers of this process's pool that run an attempt now.",
  },
  bullpen_pool_state: {
    type: 'gauge',
    unit: 'flag',
    labels: ['queue', 'state'],
    help: '1 for the state that the pool is in, 0 for the others.',
  },
  bullpen_queue_tasks: {
    type: 'gauge',
    unit: 'tasks',
    labels: ['queue', 'status'],
    help: 'Tasks in the queue over the whole fleet; every API process reports the same, so take the maximum.',
  },
  bullpen_redis_up: {
    type: 'gauge',
    unit: 'flag',
    labels: [],
    help: '1 when Redis answered at this scrape, 0 when it did not.',
  },
  bullpen_clock_skew_seconds: {
    type: 'gauge',
    unit: 'seconds',
    labels: [],
    help: "By how much this machine's clock is ahead of Redis' own; negative when it is behind.",
  },
  bullpen_scrape_failures_total: {
    type: 'counter',
    unit: 'reads',
    labels: [],
    help: 'Gauges that could not be read at a scrape; they are absent from it.',
  },
  bullpen_http_requests_total: {
    type: 'counter',
    unit: 'requests',
    labels: ['method', 'route', 'status'],
    help: "HTTP requests answered, by the route's pattern.",
  },
  bullpen_http_request_duration_seconds: {
    type: 'histogram',
    unit: 'seconds',
    labels: ['method', 'route'],
    help: 'From the arrival of an HTTP request to the end of its answer.',
    buckets: REQUEST_SECONDS,
  },
  bullpen_build_info: {
    type: 'gauge',
    unit: 'flag',
    labels: ['version', 'role'],
    help: '1, with the version and the role of this process as labels.',
  },
} as const satisfies Readonly<Record<`bullpen_${string}`, MetricRow>>

export type MetricName = keyof typeof METRICS
export type LabelOf<N extends MetricName> = (typeof METRICS)[N]['labels'][number]

/** prom-client's own metrics that break Prometheus's naming rules: gauges named like counters. They are left out. */
export const MISNAMED_PROCESS_METRICS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
] as const

/** Those of prom-client's metrics of the process that dashboards and alerts rely on. */
export const PROCESS_METRICS = [
  'nodejs_eventloop_lag_p50_seconds',
  'nodejs_eventloop_lag_p99_seconds',
  'process_cpu_seconds_total',
  'process_resident_memory_bytes',
  'process_start_time_seconds',
] as const
