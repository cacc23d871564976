// All metrics that Bullpen publishes. They are a public contract that dashboards, alerts and autoscalers rely on.

export interface MetricRow {
  /** The base unit of the metric's values. */
  readonly unit:
    | 'seconds'
    | 'tasks'
    | 'attempts'
    | 'retries'
    | 'groups'
    | 'runs'
    | 'items'
    | 'schedules'
    | 'slots'
    | 'workers'
    | 'isolates'
    | 'requests'
    | 'streams'
    | 'connections'
    | 'reads'
    | 'stalls'
    | 'entries'
    | 'duties'
    | 'bytes'
    | 'ratio'
    | 'locks'
    | 'threads'
    | 'flag'
  readonly labels: readonly string[]
  /** The counter begins at 0 when a process starts, not with its first event, for the values of labels that are known then. */
  readonly fromZero?: true
  readonly help: string
  /** The upper bounds of the buckets. Only a histogram has them. */
  readonly buckets?: readonly number[]
}

/** From 0.5 ms, for a short task that works in memory, to 10 min, for a long task with a generous timeout. */
const RUN_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
]
/** From 1 ms to an hour, because a backlog can last longer than any task in it. */
const WAIT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600]
/** From 5 ms to a day, because a task may be delayed or retried for hours. */
const TASK_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400]
/** From 100 ms to a day. A run can have any number of items. */
const PIPELINE_RUN_SECONDS = [0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400]
/** From 1 ms to 30 s, which is the longest time that a request may wait for a result. */
const REQUEST_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/** From 250 µs, for a script that stores a task, to 10 s. A producer stops waiting after 0.8 s, and a worker does not. */
const COMMAND_SECONDS = [0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

/**
 * Every name ends with its unit, and only counters' names end with `_total`. Label values come from a closed list or from the
 * catalogue, so that a process publishes a bounded number of series. The label `state` holds the name of the state, as in the
 * API. Dashboards show the state's label instead.
 */
export const METRICS = {
  bullpen_tasks_enqueued_total: {
    unit: 'tasks',
    labels: ['queue', 'task'],
    fromZero: true,
    help: 'Tasks that Redis has accepted from this process.',
  },
  bullpen_enqueue_duration_seconds: {
    unit: 'seconds',
    labels: ['queue'],
    help: 'Time from the arrival of a request at this process until Redis has accepted its task, including the time that the request waited for room in the queue. Only new tasks that requests have stored are counted.',
    buckets: REQUEST_SECONDS,
  },
  bullpen_tasks_refused_total: {
    unit: 'tasks',
    labels: ['queue', 'task', 'limit', 'action'],
    help: 'Tasks that this process did not store because their queue was full or their API key exceeded its rate, by the limit that was reached. The action is rejected or dropped.',
  },
  bullpen_blocked_requests: {
    unit: 'requests',
    labels: ['queue'],
    help: 'Number of requests to this process that are waiting for room in the queue.',
  },
  bullpen_attempts_started_total: {
    unit: 'attempts',
    labels: ['queue', 'task'],
    fromZero: true,
    help: 'Attempts that this process started. Each one is later counted as ended or as a refused commit, unless a drain abandons it, Redis never responds to its commit, or the process dies.',
  },
  bullpen_attempts_ended_total: {
    unit: 'attempts',
    labels: ['queue', 'task', 'state', 'verdict'],
    fromZero: true,
    help: "Attempts that ended in this process, by the attempt's final state and the verdict on the task. Each attempt is counted exactly once, when Redis confirms its verdict.",
  },
  bullpen_commits_refused_total: {
    unit: 'attempts',
    labels: ['queue', 'task', 'reason'],
    help: 'Attempts in this process whose result was dropped because the lock was lost or Redis refused the commit. They are not counted as ended.',
  },
  bullpen_attempt_duration_seconds: {
    unit: 'seconds',
    labels: ['queue', 'task'],
    help: "Time from a handler's start to the end of its attempt, for each attempt that is counted as ended.",
    buckets: RUN_SECONDS,
  },
  bullpen_task_wait_seconds: {
    unit: 'seconds',
    labels: ['queue', 'task'],
    help: 'Time from the moment a task was ready to its first attempt.',
    buckets: WAIT_SECONDS,
  },
  bullpen_task_duration_seconds: {
    unit: 'seconds',
    labels: ['queue', 'task'],
    help: 'Time from the enqueueing of a task to its end, including delays, waits and retries, for each task that an attempt in this process has ended. If a task was dead and then retried, the time counts from the enqueueing.',
    buckets: TASK_SECONDS,
  },
  bullpen_slo_tasks_total: {
    unit: 'tasks',
    labels: ['queue', 'task'],
    fromZero: true,
    help: 'Tasks with a service-level objective that started for the first time in this process, or that this process found to have expired before they started.',
  },
  bullpen_slo_late_tasks_total: {
    unit: 'tasks',
    labels: ['queue', 'task'],
    fromZero: true,
    help: 'Tasks of bullpen_slo_tasks_total that started later than startWithin after they were ready, or that expired. Waiting tasks are not counted until then.',
  },
  bullpen_slo_start_within_seconds: {
    unit: 'seconds',
    labels: ['queue', 'task'],
    help: 'The startWithin of the task, from its definition or that of its queue. Every process reports the objectives of its catalogue, so take the maximum or the minimum rather than the sum.',
  },
  bullpen_slo_objective_ratio: {
    unit: 'ratio',
    labels: ['queue', 'task'],
    help: 'The share of the tasks that should start within startWithin. Every process reports the objectives of its catalogue, so take the maximum or the minimum rather than the sum.',
  },
  bullpen_attempt_failures_total: {
    unit: 'attempts',
    labels: ['queue', 'task', 'reason'],
    fromZero: true,
    help: 'Ended attempts that failed, by reason. Cancellations, drains, snoozes and rate limits are not failures, and neither is an attempt that its worker could not run, because the task is left to another worker.',
  },
  bullpen_late_results_total: {
    unit: 'attempts',
    labels: ['queue', 'task'],
    fromZero: true,
    help: 'Handlers that returned after their attempt had ended. Their results were dropped.',
  },
  bullpen_isolates_replaced_total: {
    unit: 'isolates',
    labels: ['isolation'],
    fromZero: true,
    help: 'Threads and child processes that were replaced because they crashed, were killed or used too much memory.',
  },
  bullpen_tasks_cancelled_total: {
    unit: 'tasks',
    labels: ['queue', 'task'],
    fromZero: true,
    help: 'Tasks that this process cancelled, whether they were running or not.',
  },
  bullpen_tasks_expired_total: {
    unit: 'tasks',
    labels: ['queue', 'task'],
    fromZero: true,
    help: 'Tasks that passed their queue timeout before their first attempt.',
  },
  bullpen_tasks_dead_total: {
    unit: 'tasks',
    labels: ['queue', 'task'],
    fromZero: true,
    help: 'Tasks that became dead in this process: their last attempt failed, or their workers died too often.',
  },
  bullpen_tasks_dead_by_code_total: {
    unit: 'tasks',
    labels: ['queue', 'code'],
    fromZero: true,
    help: "Tasks that became dead in this process, by the error's code: the code of a declared failure, or the reason why the last attempt ended. A queue's codes after the first 100 are counted as other.",
  },
  bullpen_slots_restarted_total: {
    unit: 'slots',
    labels: ['queue'],
    fromZero: true,
    help: 'Slots that resumed after they had been unable to fetch tasks.',
  },
  bullpen_slot_state: {
    unit: 'slots',
    labels: ['queue', 'state'],
    help: 'Number of slots of this worker in each state.',
  },
  bullpen_stuck_handlers: {
    unit: 'attempts',
    labels: ['queue'],
    help: 'Handlers that are still running although their attempt has ended and their slot is free.',
  },
  bullpen_event_loop_stalls_total: {
    unit: 'stalls',
    labels: ['task'],
    fromZero: true,
    help: 'Number of times that the event loop was blocked for longer than eventLoopStallWarning, by the task that blocked it. The label is empty if no task blocked it.',
  },
  bullpen_drain_deadline_timestamp_seconds: {
    unit: 'seconds',
    labels: ['queue'],
    help: "When the time limit and the grace period of the pool's drain are over, in seconds since 1970. Missing unless the pool is draining with a time limit.",
  },
  bullpen_late_lock_renewals_total: {
    unit: 'locks',
    labels: ['queue'],
    fromZero: true,
    help: 'Locks of running tasks that this worker had not renewed for half of their duration, which is 2.5 s. A lock is counted again if it is late again after a renewal. Once a lock has expired, another worker takes the task.',
  },
  bullpen_lock_threads_restarted_total: {
    unit: 'threads',
    labels: [],
    fromZero: true,
    help: 'Number of times that the thread that renews the locks ended or could not be started. Until its restart, the main thread renews the locks, so that an event-loop stall of 5 s loses them.',
  },
  bullpen_pool_slots: {
    unit: 'slots',
    labels: ['queue'],
    help: 'Number of slots of this worker, which is the maximum number of attempts that it runs at once on the queue.',
  },
  bullpen_pool_slots_busy: {
    unit: 'slots',
    labels: ['queue'],
    help: 'Number of slots of this worker that are running an attempt.',
  },
  bullpen_pool_paused: {
    unit: 'flag',
    labels: ['queue'],
    help: '1 if a command has paused this pool of the worker, otherwise 0. A pause of the whole queue pauses no pool.',
  },
  bullpen_pool_state: {
    unit: 'flag',
    labels: ['queue', 'state'],
    help: '1 for the current state of the pool, 0 for every other state.',
  },
  bullpen_queue_tasks: {
    unit: 'tasks',
    labels: ['queue', 'status'],
    help: 'Number of tasks in the queue with this status, across the whole fleet. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_queue_tasks_ended_total: {
    unit: 'tasks',
    labels: ['queue'],
    help: 'Tasks of the queue that have ended with any status, or were deleted before their end, across the whole fleet. A dead task that is retried ends again. Redis keeps the total, so it includes what workers did before their first scrape and after their last one. Every API process reports the same number, so take the rate of each process first, and then the maximum rather than the sum.',
  },
  bullpen_queue_tasks_recovered_total: {
    unit: 'tasks',
    labels: ['queue'],
    help: 'Number of times that a task of the queue was returned to it because its worker had died or had not renewed its lock in time, across the whole fleet. The attempts of dead workers are in no other counter of ended attempts. Redis keeps the total. Every API process reports the same number, so take the rate of each process first, and then the maximum rather than the sum.',
  },
  bullpen_queue_bytes: {
    unit: 'bytes',
    labels: ['queue'],
    help: "Bytes that the queue's unfinished tasks take: the stored string of each task, plus 512. The queue's maxBytes limits this number. Every API process reports the same number, so take the maximum rather than the sum.",
  },
  bullpen_queue_limit_tasks: {
    unit: 'tasks',
    labels: ['queue'],
    help: "The queue's maxTasks: new tasks are refused if this number of tasks are waiting, scheduled or retrying. Missing if there is no such limit. Every API process reports the same number, so take the maximum rather than the sum.",
  },
  bullpen_queue_limit_bytes: {
    unit: 'bytes',
    labels: ['queue'],
    help: "The queue's maxBytes, which limits bullpen_queue_bytes. Missing if there is no such limit. Every API process reports the same number, so take the maximum rather than the sum.",
  },
  bullpen_queue_oldest_seconds: {
    unit: 'seconds',
    labels: ['queue'],
    help: 'How long the waiting task that has been ready for the longest time has been ready, whether or not it may start, or 0 if no task is waiting. A task that is waiting behind others with a higher priority is not considered. A task that has been started before counts from its last start, and a dead task that was retried counts from the retry. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_queue_next_task_seconds: {
    unit: 'seconds',
    labels: ['queue'],
    help: 'How long the waiting task that starts next has been ready, or 0 if no waiting task could start at the moment, however many slots are free. It counts from the same moment as bullpen_queue_oldest_seconds. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_queue_blocked_tasks: {
    unit: 'tasks',
    labels: ['queue'],
    help: 'Number of waiting tasks that could not start at the moment, however many slots are free, because of a limit, a throttle, permits or an open circuit breaker, or because they wait for the children of a flow. A pause does not count. If more than 100 lanes take turns, only the tasks of 100 blocked lanes are counted, so the number may be too low, but never too high. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_queue_oldest_blocked_seconds: {
    unit: 'seconds',
    labels: ['queue'],
    help: 'How long the oldest of the blocked tasks, which bullpen_queue_blocked_tasks counts, has been ready, or 0 if there are none. Tasks that wait for the children of a flow are not considered. It counts from the same moment as bullpen_queue_oldest_seconds. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_task_expected_seconds: {
    unit: 'seconds',
    labels: ['queue', 'task'],
    help: 'The expectedDuration of the definition: the estimated mean duration of an attempt, which autoscaling uses until workers have measured some attempts. Missing if the definition does not have one. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_queue_paused: {
    unit: 'flag',
    labels: ['queue'],
    help: '1 if a command has paused the queue, otherwise 0. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_queue_draining: {
    unit: 'flag',
    labels: ['queue'],
    help: '1 from the moment when a command drains the queue until a command resumes it, otherwise 0. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_breaker_state: {
    unit: 'flag',
    labels: ['queue', 'service', 'state'],
    help: '1 for the current state of the circuit breaker of the queue for this service, 0 for every other state. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_outbox_entries: {
    unit: 'entries',
    labels: ['queue'],
    help: "Number of follow-up tasks that the ends of the queue's tasks have released and that are not enqueued yet. At 10,000, workers stop fetching the queue's tasks. Every API process reports the same number, so take the maximum rather than the sum.",
  },
  bullpen_outbox_oldest_seconds: {
    unit: 'seconds',
    labels: ['queue'],
    help: 'How long the oldest of these follow-up tasks has been waiting, or 0 if there are none. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_held_retries: {
    unit: 'retries',
    labels: ['queue', 'task'],
    help: 'Number of retries that the retry budget of their definition holds, across the whole fleet. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_troubled_schedules: {
    unit: 'schedules',
    labels: ['queue', 'trouble'],
    help: 'Number of schedules in each kind of trouble: failing if the last run is dead or expired, overlapping if for at least an hour every tick has found the previous run unfinished, missed if within the last day a tick was missed for which no task was enqueued, unreadable if the leader cannot decode the input. The value is up to 30 s old. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_unaccounted_tasks: {
    unit: 'tasks',
    labels: ['queue'],
    help: 'Number of tasks that the queue has accepted, minus the tasks in all statuses and the removed tasks. It is 0 unless plain BullMQ has used the queue, and the leader corrects it within a few minutes.',
  },
  bullpen_unattached_workers: {
    unit: 'workers',
    labels: ['queue'],
    help: "Number of BullMQ Workers that use the queue without Bullpen's backend, so that they run BullMQ's own scripts. It is 1 if they are not known, and includes the queue's other BullMQ Workers if there are any. Every API process reports the same number, so take the maximum rather than the sum.",
  },
  bullpen_index_repairs: {
    unit: 'entries',
    labels: ['queue'],
    help: 'Number of status index entries, uncounted tasks, and counts of the active tasks of concurrency keys that leaders have repaired in the queue so far, and how often they have corrected its bytes. It stays 0 unless plain BullMQ uses the queue.',
  },
  bullpen_redis_up: {
    unit: 'flag',
    labels: [],
    help: '1 if Redis accepted a write during this scrape, 0 otherwise. A full Redis counts as one that accepts writes. In a cluster, one node that has a queue is enough.',
  },
  bullpen_redis_connections: {
    unit: 'connections',
    labels: ['state'],
    help: "Number of this process's connections for commands to Redis that are ready or not_ready. Each pool that fetches tasks has one, and each process has two others.",
  },
  bullpen_redis_command_duration_seconds: {
    unit: 'seconds',
    labels: [],
    help: "Time from a command's call in this process to Redis's reply or the command's timeout, including the delay of a busy event loop. One command in 13 is timed. Commands that block in Redis are not timed.",
    buckets: COMMAND_SECONDS,
  },
  bullpen_redis_memory_used_bytes: {
    unit: 'bytes',
    labels: [],
    help: 'Memory that Redis uses and counts towards its limit. The value is up to 10 s old. In a cluster, it is the value of the node with the least room.',
  },
  bullpen_redis_memory_limit_bytes: {
    unit: 'bytes',
    labels: [],
    help: "Memory that Redis may use: maxmemory or, if maxmemory is 0, the machine's memory. In a cluster, the value is the limit of the node with the least room.",
  },
  bullpen_idempotency_records_bytes: {
    unit: 'bytes',
    labels: [],
    help: 'Memory that the records of idempotency keys take, counted as 150 bytes each, in all queues. The value is up to 2 s old while requests have keys, and up to 1 min old otherwise. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_redis_unsafe: {
    unit: 'flag',
    labels: ['check'],
    help: "1 if Redis's settings fail this check, 0 if they pass it. Checks that Redis does not permit are omitted. The checks are repeated every 5 min.",
  },
  bullpen_redis_write_failed: {
    unit: 'flag',
    labels: ['write'],
    help: '1 if the last write of this kind to the disk of Redis failed, otherwise 0. The kinds are aof (the append-only file), rewrite (a rewrite of that file) and snapshot. Missing if Redis does not permit INFO. In a cluster, 1 if the write failed on any server.',
  },
  bullpen_redis_lost_tasks_total: {
    unit: 'tasks',
    labels: ['queue'],
    fromZero: true,
    help: 'Tasks that Redis has lost, for example in a failover, within a minute or two after this process had acknowledged them. Each task is counted by one process, so the sum over all processes is the number of tasks that are known to be lost.',
  },
  bullpen_enqueues_refused_total: {
    unit: 'tasks',
    labels: ['queue', 'code'],
    fromZero: true,
    help: "Tasks that this process refused because of the state of the queue or of Redis, by the error's code. Full queues count in bullpen_tasks_refused_total.",
  },
  bullpen_event_streams: {
    unit: 'streams',
    labels: ['subject'],
    help: 'Number of streams of events that readers have open at this process, by what they are about: task, queue, tag or group.',
  },
  bullpen_unfinished_groups: {
    unit: 'groups',
    labels: [],
    help: 'Number of groups that have not ended. A group may be counted for up to a minute after its end. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_groups_ended_total: {
    unit: 'groups',
    labels: ['result'],
    help: 'Groups whose end this process has caused or delivered, by their result. If a process dies at that moment, a group may be missing.',
  },
  bullpen_unfinished_runs: {
    unit: 'runs',
    labels: [],
    help: 'Number of runs of pipelines that have not ended. A run may be counted for some seconds after its end. Every API process reports the same number, so take the maximum rather than the sum.',
  },
  bullpen_runs_ended_total: {
    unit: 'runs',
    labels: ['pipeline', 'result'],
    help: 'Runs of pipelines whose end this process has caused or delivered, by their result. If a process dies at that moment, a run may be missing.',
  },
  bullpen_run_duration_seconds: {
    unit: 'seconds',
    labels: ['pipeline'],
    help: 'Time from the start of a run to its end, for each run that is counted as ended.',
    buckets: PIPELINE_RUN_SECONDS,
  },
  bullpen_run_items_total: {
    unit: 'items',
    labels: ['pipeline', 'stage', 'outcome'],
    help: "Items that have left a stage of a run, by the stage's number, starting from 1. The outcome is completed, dropped (completed without an output) or failed. Each item is counted once, by the process that has reported the end of its task; if that process dies at that moment, the item may be missing. What ends after a run was stopped is not counted.",
  },
  bullpen_leader: {
    unit: 'flag',
    labels: [],
    help: '1 if this process leads the namespace and does its housekeeping, otherwise 0. The sum over all processes is 1, except for a few seconds after a leader has died.',
  },
  bullpen_housekeeping_failures_total: {
    unit: 'duties',
    labels: ['queue', 'duty'],
    help: 'Housekeeping duties that failed while this process was the leader. A failed duty is tried again at the next visit to the queue. Duties that failed because Redis was not reachable are not counted.',
  },
  bullpen_lost_workers_total: {
    unit: 'workers',
    labels: [],
    fromZero: true,
    help: 'Workers that stopped sending heartbeats without leaving the fleet, for example because they were killed, while this process was the leader. The sum over all processes is the number of lost workers.',
  },
  bullpen_clock_skew_seconds: {
    unit: 'seconds',
    labels: [],
    help: "How far this machine's clock is ahead of Redis's clock. The value is negative if this machine's clock is behind.",
  },
  bullpen_scrape_failures_total: {
    unit: 'reads',
    labels: [],
    fromZero: true,
    help: 'Reads that failed during a scrape. The gauges that a failed read would have set are missing from that scrape.',
  },
  bullpen_http_requests_total: {
    unit: 'requests',
    labels: ['method', 'route', 'status'],
    help: "HTTP responses sent, by the route's pattern. The route is none if no route matches, and so is the method if the request is not HTTP.",
  },
  bullpen_http_request_duration_seconds: {
    unit: 'seconds',
    labels: ['method', 'route'],
    help: 'Time from the arrival of an HTTP request to the end of its response.',
    buckets: REQUEST_SECONDS,
  },
  bullpen_build_info: {
    unit: 'flag',
    labels: ['version', 'role'],
    help: 'Always 1. The labels contain the version and the role of this process.',
  },
} as const satisfies Readonly<Record<`bullpen_${string}`, MetricRow>>

export type MetricName = keyof typeof METRICS
export type CounterName = Extract<MetricName, `${string}_total`>
export type HistogramName = {
  [N in MetricName]: (typeof METRICS)[N] extends { readonly buckets: unknown } ? N : never
}[MetricName]
export type LabelOf<N extends MetricName> = (typeof METRICS)[N]['labels'][number]

export function metricType(name: string, { buckets }: MetricRow): 'counter' | 'gauge' | 'histogram' {
  if (buckets !== undefined) return 'histogram'
  return name.endsWith('_total') ? 'counter' : 'gauge'
}

/**
 * prom-client metrics that break Prometheus's naming rules: they are gauges but are named like counters. Bullpen does not publish
 * them.
 */
export const MISNAMED_PROCESS_METRICS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
] as const

/** prom-client metrics that dashboards and alerts rely on. */
export const PROCESS_METRICS = [
  'nodejs_eventloop_lag_p50_seconds',
  'nodejs_eventloop_lag_p99_seconds',
  'process_cpu_seconds_total',
  'process_resident_memory_bytes',
  'process_start_time_seconds',
] as const
