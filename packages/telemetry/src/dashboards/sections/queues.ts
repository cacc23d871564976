// The panels of the queues, groups and runs: whether tasks flow through them, and what holds them up.
import { query, type Section } from '../grafana.ts'
import { OF_QUEUE, OF_TASK, RATE } from './selectors.ts'

const NEARLY_FULL_ABOVE = 0.8

export const queueSection: Section = {
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
        query(`sum by (task, action) (rate(bullpen_tasks_refused_total{${OF_TASK}}[${RATE}]))`, '{{task}} {{action}}'),
      ],
    },
  ],
}
