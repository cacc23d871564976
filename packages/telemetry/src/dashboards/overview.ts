// The dashboard that answers, at one look, whether tasks flow: backlog, throughput, failures, latency, workers, API.
import { dashboard, query } from './grafana.ts'

const OF_TASK = 'queue=~"$queue", task=~"$task"'
const OF_QUEUE = 'queue=~"$queue"'
const RATE = '$__rate_interval'

/** Handlers that hang hold workers; a pool that idles is paid for. Both ends of the scale are worth a look. */
const IDLE_BELOW = 0.1
const SATURATED_ABOVE = 0.9

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
            'Every API process reports the whole fleet, so the maximum is taken. Kept final tasks are left out.',
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
          title: 'Dead tasks',
          description: 'The dead-letter list: it grows only when somebody has to look.',
          unit: 'short',
          queries: [query(`max by (queue) (bullpen_queue_tasks{${OF_QUEUE}, status="dead"})`, '{{queue}}')],
        },
        {
          title: 'Enqueued',
          description: 'Tasks that were stored, per second. Above "attempts ended" for long, the backlog grows.',
          unit: 'ops',
          queries: [query(`sum by (task) (rate(bullpen_tasks_enqueued_total{${OF_TASK}}[${RATE}]))`, '{{task}}')],
        },
      ],
    },
    {
      title: 'Attempts',
      panels: [
        {
          title: 'Attempts ended by state',
          description: 'Per second, by the state that the attempt ended in.',
          unit: 'ops',
          stacked: true,
          queries: [query(`sum by (state) (rate(bullpen_attempts_ended_total{${OF_TASK}}[${RATE}]))`, '{{state}}')],
        },
        {
          title: 'Failure ratio',
          description: 'Failed attempts of all that ended. Cancels, stops and drains are decisions, not failures.',
          unit: 'percentunit',
          max: 1,
          thresholds: [
            { from: 0, colour: 'green' },
            { from: 0.05, colour: 'orange' },
            { from: 0.2, colour: 'red' },
          ],
          queries: [
            query(
              // no failure at all has no series, and is zero
              `(sum by (task) (rate(bullpen_attempt_failures_total{${OF_TASK}}[${RATE}])) or 0 * sum by (task) (rate(bullpen_attempts_ended_total{${OF_TASK}}[${RATE}]))) / sum by (task) (rate(bullpen_attempts_ended_total{${OF_TASK}}[${RATE}]))`,
              '{{task}}',
            ),
          ],
        },
        {
          title: 'Failures by reason',
          description: 'Per second. "declared" is a failure that the handler named itself; the rest is for engineers.',
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
          description: "From a handler's start to the end of its attempt.",
          unit: 's',
          queries: [0.5, 0.95, 0.99].map((quantile) =>
            query(quantileOf(quantile, 'bullpen_attempt_duration_seconds_bucket'), `p${quantile * 100} {{task}}`),
          ),
        },
        {
          title: 'Wait, p99',
          description:
            "From the moment that a task was ready to its handler's start. High with idle workers: look at Redis.",
          unit: 's',
          queries: [query(quantileOf(0.99, 'bullpen_task_wait_seconds_bucket'), '{{task}}')],
        },
        {
          title: 'Retries and late results',
          description: 'Per second. A late result came back after its attempt had ended, and was dropped.',
          unit: 'ops',
          queries: [
            query(
              `sum by (task) (rate(bullpen_attempts_ended_total{${OF_TASK}, verdict="retrying"}[${RATE}]))`,
              'retry {{task}}',
            ),
            query(`sum by (task) (rate(bullpen_late_results_total{${OF_TASK}}[${RATE}]))`, 'late {{task}}'),
          ],
        },
      ],
    },
    {
      title: 'Workers',
      panels: [
        {
          title: 'Workers busy',
          description: 'Over all pools of the queue, beside how many there are.',
          unit: 'short',
          queries: [
            query(`sum by (queue) (bullpen_pool_slots_busy{${OF_QUEUE}})`, '{{queue}} busy'),
            query(`sum by (queue) (bullpen_pool_slots{${OF_QUEUE}})`, '{{queue}} all'),
          ],
        },
        {
          title: 'Utilisation',
          description: 'Busy workers of all. Above 90 % tasks wait; below 10 % the pool is too large, or starved.',
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
          title: 'Pools by state',
          description: 'How many pools are in each state; SHUTTING_DOWN during a deploy is as it should be.',
          unit: 'short',
          stacked: true,
          queries: [query(`sum by (state) (bullpen_pool_state{${OF_QUEUE}}) > 0`, '{{state}}')],
        },
      ],
    },
    {
      title: 'API and processes',
      panels: [
        {
          title: 'HTTP requests',
          description: 'Per second, by route.',
          unit: 'reqps',
          queries: [
            query(`sum by (method, route) (rate(bullpen_http_requests_total[${RATE}]))`, '{{method}} {{route}}'),
          ],
        },
        {
          title: 'HTTP p99',
          description: 'Look-ups that wait for a result take as long as they were asked to.',
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
          description: 'Answers per second that say that the fault is on our side.',
          unit: 'reqps',
          queries: [
            query(
              `sum by (route, status) (rate(bullpen_http_requests_total{status=~"5.."}[${RATE}]))`,
              '{{route}} {{status}}',
            ),
          ],
        },
        {
          title: 'Redis answers',
          description: 'The worst that any process sees: 1 when all reach Redis.',
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
          description: 'More than one of a role while a deploy is under way.',
          unit: 'short',
          kind: 'stat',
          width: 4,
          queries: [query('count by (role, version) (bullpen_build_info)', '{{role}} {{version}}')],
        },
        {
          title: 'Event-loop lag, p99',
          description: 'Above some tens of milliseconds a handler blocks its process: isolate it.',
          unit: 's',
          queries: [query('nodejs_eventloop_lag_p99_seconds and on (instance) bullpen_build_info', '{{instance}}')],
        },
        {
          title: 'Event loop blocked',
          description:
            'Times per second that it stood still for longer than eventLoopStallWarning, by task; the log has the line.',
          unit: 'ops',
          queries: [query(`sum by (task) (rate(bullpen_event_loop_stalls_total[${RATE}]))`, '{{task}}')],
        },
        {
          title: 'Clock skew',
          description:
            "How far each machine's clock is ahead of Redis' own; negative behind. Tasks go by that of Redis.",
          unit: 's',
          queries: [query('bullpen_clock_skew_seconds', '{{instance}}')],
        },
        {
          title: 'Memory',
          description: 'Resident, by process.',
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
