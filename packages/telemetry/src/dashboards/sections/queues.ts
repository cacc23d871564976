// The panels of the queues: whether tasks flow through them, and what holds them up.
import { query, type Section } from '../panel.ts'
import { OF_QUEUE, quantileOf, RATE } from './selectors.ts'

const NEARLY_FULL_ABOVE = 0.8

export const queueSection: Section = {
  title: 'Backlog',
  panels: [
    {
      title: 'Tasks by status',
      description: 'Tasks that have not ended.',
      bad: 'Waiting tasks that keep growing: the workers do not keep up. Waiting tasks and no active ones: the queue is stuck.',
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
      title: 'Oldest waiting task',
      description:
        'How long the oldest waiting task, the oldest blocked one and the one that starts next have been waiting.',
      bad: 'If the time of the next task grows, the queue is stuck or its workers do not keep up. The alert fires above 5 minutes. If that of the oldest blocked task grows, a limit, a throttle, permits or an open circuit breaker keep it from starting. If only that of the oldest one grows, it waits for its turn, or behind tasks with a higher priority.',
      runbook: 'backlog-grows.md',
      unit: 's',
      queries: [
        query(`max by (queue) (bullpen_queue_oldest_seconds{${OF_QUEUE}})`, '{{queue}} oldest'),
        query(`max by (queue) (bullpen_queue_oldest_blocked_seconds{${OF_QUEUE}})`, '{{queue}} oldest blocked'),
        query(`max by (queue) (bullpen_queue_next_task_seconds{${OF_QUEUE}})`, '{{queue}} next'),
      ],
    },
    {
      title: 'Blocked tasks',
      description:
        'Waiting tasks that could not start, however many slots are free, because of a limit, a throttle, permits or an open circuit breaker.',
      bad: 'As many as are waiting: nothing starts until what blocks them ends. More workers do not help. "bullpen doctor" says what the oldest one waits for.',
      runbook: 'nothing-is-running.md',
      unit: 'short',
      queries: [query(`max by (queue) (bullpen_queue_blocked_tasks{${OF_QUEUE}})`, '{{queue}}')],
    },
    {
      title: 'In and out',
      description:
        'Tasks enqueued and ended, and attempts started, per second. A task that is retried starts more than one attempt.',
      bad: 'More enqueued than ended: the backlog grows. Nothing started although tasks wait: the queue is stuck.',
      runbook: 'nothing-is-running.md',
      unit: 'ops',
      queries: [
        query(`sum by (queue) (rate(bullpen_tasks_enqueued_total{${OF_QUEUE}}[${RATE}]))`, '{{queue}} enqueued'),
        query(`sum by (queue) (rate(bullpen_attempts_started_total{${OF_QUEUE}}[${RATE}]))`, '{{queue}} started'),
        query(`max by (queue) (rate(bullpen_queue_tasks_ended_total{${OF_QUEUE}}[${RATE}]))`, '{{queue}} ended'),
      ],
    },
    {
      title: 'Paused and drained queues',
      description: 'Queues that a command has paused or drained, and the paused pools of workers.',
      bad: 'A queue that should run: its tasks wait until "bullpen resume --queue Q", or until its pools are resumed.',
      runbook: 'nothing-is-running.md',
      unit: 'short',
      ifEmpty: 'no queue and no pool is paused or drained by command',
      queries: [
        query(`max by (queue) (bullpen_queue_paused{${OF_QUEUE}}) > 0`, '{{queue}} paused'),
        query(`max by (queue) (bullpen_queue_draining{${OF_QUEUE}}) > 0`, '{{queue}} drained'),
        query(`sum by (queue) (bullpen_pool_paused{${OF_QUEUE}}) > 0`, '{{queue}} paused pools'),
      ],
    },
    {
      title: 'Circuit breakers',
      description: 'Circuit breakers that are open or half-open.',
      bad: 'A service that the tasks of a queue call is down, or somebody has opened its breaker. The tasks that depend on it wait.',
      runbook: 'attempts-fail.md',
      unit: 'short',
      ifEmpty: 'every circuit breaker is closed',
      queries: [
        query(
          `max by (queue, service, state) (bullpen_breaker_state{${OF_QUEUE}, state!="closed"}) > 0`,
          '{{queue}} {{service}} {{state}}',
        ),
      ],
    },
    {
      title: 'Held retries',
      description: 'Retries that the retry budget of their definition holds.',
      bad: 'Growth: a service that the tasks call is down. Once the service is back, the number falls faster and faster.',
      runbook: 'attempts-fail.md',
      unit: 'short',
      queries: [query(`max by (queue, task) (bullpen_held_retries{${OF_QUEUE}})`, '{{queue}} {{task}}')],
    },
    {
      title: 'Dead, cancelled and expired tasks',
      description:
        'Tasks that ended without a result and are still stored. Cancelled tasks were ended by request, and expired tasks passed their queue timeout.',
      bad: 'More and more dead tasks: "bullpen dead counts" shows their kinds of error. More and more expired tasks: the queue is too slow for its queue timeout.',
      runbook: 'dead-tasks.md',
      unit: 'short',
      queries: [
        query(
          `max by (queue, status) (bullpen_queue_tasks{${OF_QUEUE}, status=~"dead|cancelled|expired"})`,
          '{{queue}} {{status}}',
        ),
      ],
    },
  ],
}

export const limitSection: Section = {
  title: 'Limits and producers',
  panels: [
    {
      title: 'Limits used',
      description: "The share of the queue's maxTasks and maxBytes that is used.",
      bad: 'Above 80%, the queue is nearly full. At 100%, new tasks are blocked, rejected or dropped.',
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
      title: 'Bytes of unfinished tasks',
      description: 'The stored strings of the tasks that have not ended, plus 512 bytes for each task.',
      bad: "Near the queue's maxBytes, at which it refuses new tasks. Growth without more tasks: inputs have become larger.",
      runbook: 'producers-slowed.md',
      unit: 'bytes',
      queries: [query(`max by (queue) (bullpen_queue_bytes{${OF_QUEUE}})`, '{{queue}}')],
    },
    {
      title: 'Time to enqueue, p99',
      description: 'Time until Redis has accepted the task of a request.',
      bad: 'If the backlog grows as well, the queue is full, and producers are slowed down. If it does not, the API or Redis is slow.',
      runbook: 'enqueue-slow.md',
      unit: 's',
      queries: [query(quantileOf(0.99, `bullpen_enqueue_duration_seconds_bucket{${OF_QUEUE}}`, 'queue'), '{{queue}}')],
    },
    {
      title: 'Blocked requests',
      description: 'Requests that are waiting for room in a full queue.',
      bad: 'Above 0: producers are slowed down, because the workers do not keep up.',
      runbook: 'producers-slowed.md',
      unit: 'short',
      queries: [query(`sum by (queue) (bullpen_blocked_requests{${OF_QUEUE}})`, '{{queue}}')],
    },
    {
      title: 'Refused because of a limit',
      description:
        'Tasks per second that were not stored because their queue was full or their API key exceeded its rate.',
      bad: 'Any: "Tasks by status" shows which tasks fill the queue. The action is rejected or dropped.',
      runbook: 'producers-slowed.md',
      unit: 'ops',
      ifEmpty: 'no task was refused',
      queries: [
        query(
          `sum by (queue, limit, action) (rate(bullpen_tasks_refused_total{${OF_QUEUE}}[${RATE}]))`,
          '{{queue}} {{limit}} {{action}}',
        ),
      ],
    },
    {
      title: 'Refused by a draining queue or by Redis',
      description:
        "Tasks per second that were refused although their queue had room, by the error's code: the queue is draining or has too old a worker, or Redis is full or unsafe.",
      bad: 'queue_draining: a command drains the queue. fleet_too_old: a worker must be upgraded. Codes about Redis: it has no room, or might delete tasks.',
      runbook: 'redis-full.md',
      unit: 'ops',
      ifEmpty: 'no task was refused',
      queries: [
        query(
          `sum by (queue, code) (rate(bullpen_enqueues_refused_total{${OF_QUEUE}}[${RATE}]))`,
          '{{queue}} {{code}}',
        ),
      ],
    },
  ],
}
