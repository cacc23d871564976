// Defines the overview dashboard, which shows whether tasks are flowing: backlog, throughput, failures, latency, slots, API and
// processes.
import { ATTEMPT_STATE_LABELS, POOL_STATE_LABELS } from '@bullpen/contract'
import { dashboard, query } from './grafana.ts'

const OF_TASK = 'queue=~"$queue", task=~"$task"'
const OF_QUEUE = 'queue=~"$queue"'
const RATE = '$__rate_interval'

/** Both ends of the scale need attention, because a saturated pool delays tasks and an idle one costs money. */
const IDLE_BELOW = 0.1
const SATURATED_ABOVE = 0.9
const NEARLY_FULL_ABOVE = 0.8

export const overview = dashboard({
  uid: 'bullpen-overview',
  title: 'Bullpen overview',
  description: 'Queues, attempts, workers and the API of one Bullpen installation.',
  variables: [
    { name: 'queue', label: 'Queue', query: 'label_values(bullpen_queue_tasks, queue)' },
    {
      name: 'task',
      label: 'Task',
      query: 'label_values(bullpen_attempts_started_total{queue=~"$queue"}, task)',
    },
  ],
  sections: [
    {
      title: 'Queues',
      panels: [
        {
          title: 'Tasks by status',
          description:
            'Tasks that have not ended. Every API process reports the numbers of the whole fleet, so the panel shows the maximum.',
          runbook: 'backlog-grows.md',
          unit: 'short',
          stacked: true,
          queries: [
            query(
              `max by (queue, status) (bullpen_queue_tasks{${OF_QUEUE}, status=~"scheduled|waiting|active|retrying"})`,
              '{{queue}} {{status}}',
            ),
          ],
        },
        {
          title: 'Dead, cancelled and expired tasks',
          description:
            'Tasks that ended without a result and are still stored. Dead tasks need attention: "bullpen dead counts" shows their kinds of error. Cancelled tasks were ended by request, and expired tasks passed their queue timeout.',
          runbook: 'dead-tasks.md',
          unit: 'short',
          queries: [
            query(
              `max by (queue, status) (bullpen_queue_tasks{${OF_QUEUE}, status=~"dead|cancelled|expired"})`,
              '{{queue}} {{status}}',
            ),
          ],
        },
        {
          title: 'Oldest waiting task',
          description:
            'How long the task that starts next has been waiting, by queue. If this time grows, the queue is stuck or its workers do not keep up.',
          runbook: 'backlog-grows.md',
          unit: 's',
          queries: [query(`max by (queue) (bullpen_queue_oldest_seconds{${OF_QUEUE}})`, '{{queue}}')],
        },
        {
          title: 'Limits used',
          description:
            "The share of the queue's maxTasks and maxBytes that is used. At 100%, new tasks are blocked, rejected or dropped.",
          runbook: 'producers-slowed.md',
          unit: 'percentunit',
          thresholds: [
            { from: 0, colour: 'green' },
            { from: NEARLY_FULL_ABOVE, colour: 'red' },
          ],
          queries: [
            query(
              `max by (queue) (sum without (status) (bullpen_queue_tasks{${OF_QUEUE}, status=~"waiting|scheduled|retrying"})) / max by (queue) (bullpen_queue_limit_tasks{${OF_QUEUE}})`,
              '{{queue}} tasks',
            ),
            query(
              `max by (queue) (bullpen_queue_bytes{${OF_QUEUE}}) / max by (queue) (bullpen_queue_limit_bytes{${OF_QUEUE}})`,
              '{{queue}} bytes',
            ),
          ],
        },
        {
          title: 'Time to enqueue, p99',
          description:
            'Time until Redis has accepted the task of a request, by queue. If the backlog grows as well, the queue is full, and producers are slowed down. If it does not, the API or Redis is slow.',
          runbook: 'enqueue-slow.md',
          unit: 's',
          queries: [
            query(
              `histogram_quantile(0.99, sum by (le, queue) (rate(bullpen_enqueue_duration_seconds_bucket{${OF_QUEUE}}[${RATE}])))`,
              '{{queue}}',
            ),
          ],
        },
        {
          title: 'Blocked requests',
          description: 'Requests that are waiting for room in a full queue.',
          runbook: 'producers-slowed.md',
          unit: 'short',
          queries: [query(`sum by (queue) (bullpen_blocked_requests{${OF_QUEUE}})`, '{{queue}}')],
        },
        {
          title: 'Paused queues',
          description: 'Queues that a command has paused. Their tasks wait until "bullpen resume --queue Q".',
          runbook: 'nothing-is-running.md',
          unit: 'short',
          queries: [query(`max by (queue) (bullpen_queue_paused{${OF_QUEUE}}) > 0`, '{{queue}}')],
        },
        {
          title: 'Bytes of unfinished tasks',
          description:
            'The stored strings of the tasks that have not ended, plus 512 bytes for each task. At its maxBytes, a queue refuses new tasks.',
          runbook: 'producers-slowed.md',
          unit: 'bytes',
          queries: [query(`max by (queue) (bullpen_queue_bytes{${OF_QUEUE}})`, '{{queue}}')],
        },
        {
          title: 'Held retries',
          description:
            'Retries that the retry budget of their definition holds. While a service that the tasks call is down, this number grows. Once the service is back, it falls faster and faster.',
          runbook: 'attempts-fail.md',
          unit: 'short',
          queries: [query(`max by (queue, task) (bullpen_held_retries{${OF_TASK}})`, '{{queue}} {{task}}')],
        },
        {
          title: 'Schedules in trouble',
          description:
            'Schedules whose last run is dead or expired (failing), whose ticks have found the previous run unfinished for an hour (overlapping), or that have missed a tick within the last day (missed). "bullpen schedules list --trouble" lists them.',
          runbook: 'schedule-in-trouble.md',
          unit: 'short',
          queries: [
            query(`max by (queue, trouble) (bullpen_troubled_schedules{${OF_QUEUE}}) > 0`, '{{queue}} {{trouble}}'),
          ],
        },
        {
          title: 'Unfinished groups',
          description: 'Groups that have not ended. A group that is never sealed ends with its total timeout.',
          unit: 'short',
          queries: [query('max(bullpen_unfinished_groups)', 'groups')],
        },
        {
          title: 'Unfinished runs',
          description:
            'Runs of pipelines that have not ended. "bullpen runs list" lists them. A run ends with its total timeout at the latest.',
          unit: 'short',
          queries: [query('max(bullpen_unfinished_runs)', 'runs')],
        },
        {
          title: 'Ends of runs',
          description: 'Runs of pipelines that have ended per second, by their result.',
          unit: 'ops',
          queries: [
            query(`sum by (pipeline, result) (rate(bullpen_runs_ended_total[${RATE}]))`, '{{pipeline}} {{result}}'),
          ],
        },
        {
          title: 'Duration of runs',
          description: 'The median time from the start of a run to its end.',
          unit: 's',
          queries: [
            query(
              `histogram_quantile(0.5, sum by (pipeline, le) (rate(bullpen_run_duration_seconds_bucket[${RATE}])))`,
              '{{pipeline}}',
            ),
          ],
        },
        {
          title: 'Items of pipelines',
          description:
            'Items per second that have left a stage of a run. The stage with the lowest rate limits the others; if items wait for it, give it more concurrency or more workers.',
          unit: 'ops',
          queries: [
            query(
              `sum by (pipeline, stage, outcome) (rate(bullpen_run_items_total[${RATE}]))`,
              '{{pipeline}} {{stage}} {{outcome}}',
            ),
          ],
        },
        {
          title: 'Oldest follow-up task',
          description:
            'How long the oldest follow-up task has been in the outbox of its queue. Above a few seconds, the process that should forward it is gone or cannot reach the target queue.',
          runbook: 'outbox-grows.md',
          unit: 's',
          queries: [query(`max by (queue) (bullpen_outbox_oldest_seconds{${OF_QUEUE}})`, '{{queue}}')],
        },
        {
          title: 'Unaccounted tasks',
          description:
            'Accepted tasks that have no status and have not been removed. A value other than 0 for more than a few minutes indicates a defect. The value is negative if plain BullMQ has added tasks.',
          runbook: 'unaccounted-tasks.md',
          unit: 'short',
          queries: [query(`max by (queue) (bullpen_unaccounted_tasks{${OF_QUEUE}})`, '{{queue}}')],
        },
        {
          title: 'Enqueued',
          description:
            'Tasks enqueued per second. While this rate is above that of "Attempts ended by state", the backlog grows.',
          runbook: 'backlog-grows.md',
          unit: 'ops',
          queries: [query(`sum by (task) (rate(bullpen_tasks_enqueued_total{${OF_TASK}}[${RATE}]))`, '{{task}}')],
        },
        {
          title: 'Refused',
          description:
            'Tasks per second that were not stored because their queue had reached a limit. "Tasks by status" shows which tasks fill the queue.',
          runbook: 'producers-slowed.md',
          unit: 'ops',
          queries: [
            query(
              `sum by (task, action) (rate(bullpen_tasks_refused_total{${OF_TASK}}[${RATE}]))`,
              '{{task}} {{action}}',
            ),
          ],
        },
      ],
    },
    {
      title: 'Attempts',
      panels: [
        {
          title: 'Attempts ended by state',
          description: 'Attempts that ended per second, by final state.',
          runbook: 'attempts-fail.md',
          unit: 'ops',
          stacked: true,
          names: ATTEMPT_STATE_LABELS,
          queries: [query(`sum by (state) (rate(bullpen_attempts_ended_total{${OF_TASK}}[${RATE}]))`, '{{state}}')],
        },
        {
          title: 'Failure ratio',
          description:
            'Share of all ended attempts that failed. Cancellations, drains, snoozes and rate limits are not failures.',
          runbook: 'attempts-fail.md',
          unit: 'percentunit',
          max: 1,
          thresholds: [
            { from: 0, colour: 'green' },
            { from: 0.05, colour: 'orange' },
            { from: 0.2, colour: 'red' },
          ],
          queries: [
            query(
              // A task without failures has no series, but its ratio should be shown as 0.
              `(sum by (task) (rate(bullpen_attempt_failures_total{${OF_TASK}}[${RATE}])) or 0 * sum by (task) (rate(bullpen_attempts_ended_total{${OF_TASK}}[${RATE}]))) / sum by (task) (rate(bullpen_attempts_ended_total{${OF_TASK}}[${RATE}]))`,
              '{{task}}',
            ),
          ],
        },
        {
          title: 'Failures by reason',
          description:
            'Failures per second. "declared" is a failure that the handler declared. Every other reason indicates a problem in the code or the setup.',
          runbook: 'attempts-fail.md',
          unit: 'ops',
          queries: [
            query(
              `sum by (task, reason) (rate(bullpen_attempt_failures_total{${OF_TASK}}[${RATE}]))`,
              '{{task}} {{reason}}',
            ),
          ],
        },
        {
          title: 'Attempt duration',
          description: "Time from a handler's start to the end of its attempt.",
          unit: 's',
          queries: [0.5, 0.95, 0.99].map((quantile) =>
            query(quantileOf(quantile, 'bullpen_attempt_duration_seconds_bucket'), `p${quantile * 100} {{task}}`),
          ),
        },
        {
          title: 'Wait, p99',
          description:
            "Time from the moment a task was ready to its handler's start. If this time is long while slots are idle, check Redis.",
          runbook: 'backlog-grows.md',
          unit: 's',
          queries: [query(quantileOf(0.99, 'bullpen_task_wait_seconds_bucket'), '{{task}}')],
        },
        {
          title: 'Dead tasks by code',
          description:
            'Tasks that become dead per second, by the error code of their last attempt. "poison" is a task that has killed its process too often.',
          runbook: 'dead-tasks.md',
          unit: 'ops',
          queries: [
            query(
              `sum by (queue, code) (rate(bullpen_tasks_dead_by_code_total{${OF_QUEUE}}[${RATE}]))`,
              '{{queue}} {{code}}',
            ),
          ],
        },
        {
          title: 'Retries and dropped results',
          description:
            'Retries, late results and refused commits per second. A late result is one that a handler returned after its attempt had ended. A commit is refused if the attempt has lost its task. Both results are dropped.',
          runbook: 'duplicates.md',
          unit: 'ops',
          queries: [
            query(
              `sum by (task) (rate(bullpen_attempts_ended_total{${OF_TASK}, verdict="retrying"}[${RATE}]))`,
              'retry {{task}}',
            ),
            query(`sum by (task) (rate(bullpen_late_results_total{${OF_TASK}}[${RATE}]))`, 'late {{task}}'),
            query(
              `sum by (task, reason) (rate(bullpen_commits_refused_total{${OF_TASK}}[${RATE}]))`,
              'refused {{task}} {{reason}}',
            ),
          ],
        },
      ],
    },
    {
      title: 'Workers',
      panels: [
        {
          title: 'Busy slots',
          description:
            "Busy slots and total slots, across all of the queue's workers. A busy slot is running an attempt.",
          runbook: 'nothing-is-running.md',
          unit: 'short',
          queries: [
            query(`sum by (queue) (bullpen_pool_slots_busy{${OF_QUEUE}})`, '{{queue}} busy'),
            query(`sum by (queue) (bullpen_pool_slots{${OF_QUEUE}})`, '{{queue}} all'),
          ],
        },
        {
          title: 'Utilisation',
          description:
            'Share of slots that are busy. Above 90%, tasks have to wait. Below 10%, the queue has too many slots or too few tasks.',
          runbook: 'slots-idle.md',
          unit: 'percentunit',
          max: 1,
          thresholds: [
            { from: 0, colour: 'blue' },
            { from: IDLE_BELOW, colour: 'green' },
            { from: SATURATED_ABOVE, colour: 'red' },
          ],
          queries: [
            query(
              `sum by (queue) (bullpen_pool_slots_busy{${OF_QUEUE}}) / sum by (queue) (bullpen_pool_slots{${OF_QUEUE}})`,
              '{{queue}}',
            ),
          ],
        },
        {
          title: 'Stuck handlers',
          description:
            'Handlers that are running although their attempts have ended. They use memory and connections until they return.',
          runbook: 'stuck-handlers.md',
          unit: 'short',
          queries: [query(`sum by (queue, instance) (bullpen_stuck_handlers{${OF_QUEUE}})`, '{{queue}} {{instance}}')],
        },
        {
          title: 'Pools by state',
          description: 'Number of pools in each state. "draining" is normal during a deploy.',
          runbook: 'drain-stuck.md',
          unit: 'short',
          stacked: true,
          names: POOL_STATE_LABELS,
          queries: [query(`sum by (state) (bullpen_pool_state{${OF_QUEUE}}) > 0`, '{{state}}')],
        },
      ],
    },
    {
      title: 'API and processes',
      panels: [
        {
          title: 'HTTP requests',
          description: 'Requests per second, by route.',
          unit: 'reqps',
          queries: [
            query(`sum by (method, route) (rate(bullpen_http_requests_total[${RATE}]))`, '{{method}} {{route}}'),
          ],
        },
        {
          title: 'Event streams',
          description: 'Streams of events that readers have open, by what they are about.',
          unit: 'short',
          queries: [query('sum by (subject) (bullpen_event_streams)', '{{subject}}')],
        },
        {
          title: 'HTTP p99',
          description: 'A request that waits for a result may take as long as the caller is willing to wait.',
          runbook: 'enqueue-slow.md',
          unit: 's',
          queries: [
            query(
              `histogram_quantile(0.99, sum by (le, method, route) (rate(bullpen_http_request_duration_seconds_bucket[${RATE}])))`,
              '{{method}} {{route}}',
            ),
          ],
        },
        {
          title: 'HTTP 5xx',
          description: 'Server errors per second.',
          runbook: 'api-errors.md',
          unit: 'reqps',
          queries: [
            query(
              `sum by (route, status) (rate(bullpen_http_requests_total{status=~"5.."}[${RATE}]))`,
              '{{route}} {{status}}',
            ),
          ],
        },
        {
          title: 'Redis reachable',
          description: '1 if every process can reach Redis, 0 if at least one cannot.',
          runbook: 'redis-away.md',
          unit: 'short',
          kind: 'stat',
          width: 4,
          thresholds: [
            { from: 0, colour: 'red' },
            { from: 1, colour: 'green' },
          ],
          queries: [query('min(bullpen_redis_up)', 'Redis')],
        },
        {
          title: 'Versions',
          description: 'During a deploy, a role has more than one version.',
          unit: 'short',
          kind: 'stat',
          width: 4,
          queries: [query('count by (role, version) (bullpen_build_info)', '{{role}} {{version}}')],
        },
        {
          title: 'Redis memory',
          description:
            'The share of its memory that Redis uses, and the share that idempotency keys take. New tasks are refused at the watermark, which is 80% by default, and tasks with a new idempotency key if such keys take 25%.',
          runbook: 'redis-full.md',
          unit: 'percentunit',
          queries: [
            query('max(bullpen_redis_memory_used_bytes / bullpen_redis_memory_limit_bytes)', 'Redis'),
            query('max(bullpen_idempotency_records_bytes / bullpen_redis_memory_limit_bytes)', 'idempotency keys'),
          ],
        },
        {
          title: 'Unsafe settings of Redis',
          description:
            "1 for each check of Redis's settings that fails, otherwise 0. If persistence or eviction fails, Redis may lose tasks.",
          runbook: 'redis-unsafe.md',
          unit: 'short',
          queries: [query('max by (check) (bullpen_redis_unsafe)', '{{check}}')],
        },
        {
          title: 'Refused tasks',
          description: 'Tasks per second that were refused because of the state of the queue or Redis.',
          runbook: 'redis-full.md',
          unit: 'ops',
          queries: [
            query(`sum by (queue, code) (rate(bullpen_enqueues_refused_total[${RATE}]))`, '{{queue}} {{code}}'),
          ],
        },
        {
          title: 'Event-loop lag, p99',
          description:
            'If the lag is above a few tens of milliseconds, a handler is blocking its process, and its task should be isolated.',
          runbook: 'event-loop-stalled.md',
          unit: 's',
          queries: [query('nodejs_eventloop_lag_p99_seconds and on (instance) bullpen_build_info', '{{instance}}')],
        },
        {
          title: 'Event-loop stalls',
          description:
            'How often per second a task blocked the event loop for longer than eventLoopStallWarning. The log names the function, the file and the line.',
          runbook: 'event-loop-stalled.md',
          unit: 'ops',
          queries: [query(`sum by (task) (rate(bullpen_event_loop_stalls_total[${RATE}]))`, '{{task}}')],
        },
        {
          title: 'Leader',
          description:
            "The process that does the namespace's housekeeping. If there is no leader for more than a few seconds, dead workers' tasks are not recovered.",
          runbook: 'no-leader.md',
          unit: 'short',
          queries: [query('bullpen_leader == 1', '{{instance}}')],
        },
        {
          title: 'Housekeeping failures',
          description:
            "How often per second a part of a queue's housekeeping failed. The leader's log has the error. The other parts are not affected.",
          runbook: 'housekeeping-fails.md',
          unit: 'ops',
          queries: [
            query(`sum by (queue, duty) (rate(bullpen_housekeeping_failures_total[${RATE}]))`, '{{queue}} {{duty}}'),
          ],
        },
        {
          title: 'Clock skew',
          description:
            "How far each machine's clock is ahead of Redis's clock. The value is negative if the machine's clock is behind. Tasks use Redis's clock.",
          runbook: 'clock-skew.md',
          unit: 's',
          queries: [query('bullpen_clock_skew_seconds', '{{instance}}')],
        },
        {
          title: 'Memory',
          description: 'Resident memory, by process.',
          unit: 'bytes',
          queries: [query('process_resident_memory_bytes and on (instance) bullpen_build_info', '{{instance}}')],
        },
      ],
    },
  ],
})

function quantileOf(quantile: number, buckets: string): string {
  return `histogram_quantile(${quantile}, sum by (le, task) (rate(${buckets}{${OF_TASK}}[${RATE}])))`
}
