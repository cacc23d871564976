// The panels of attempts: how they end, how long they take, and what fails.
import { ATTEMPT_STATE_LABELS } from '@bullpen/contract'
import { query, type Section } from '../panel.ts'
import { OF_QUEUE, OF_TASK, quantileOf, RATE } from './selectors.ts'

export const attemptSection: Section = {
  title: 'Attempts',
  panels: [
    {
      title: 'Enqueued',
      description: 'Tasks enqueued per second.',
      bad: 'Above the rate of "Attempts ended by state" for a long time: the backlog grows. 0 although tasks are expected: the producers have stopped.',
      runbook: 'backlog-grows.md',
      unit: 'ops',
      queries: [query(`sum by (task) (rate(bullpen_tasks_enqueued_total{${OF_TASK}}[${RATE}]))`, '{{task}}')],
    },
    {
      title: 'Attempts ended by state',
      description: 'Attempts that ended per second, by final state.',
      bad: 'A rising share of any state other than succeeded. "cancelled" and "interrupted" are normal while tasks are cancelled or workers drain.',
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
      bad: 'Above 5%: look at the reasons. Above 20%, the alert fires: a service is down, or a new version has a bug.',
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
      description: 'Failures per second. "declared" is a failure that the handler declared.',
      bad: 'Any reason other than declared: a problem in the code or the setup.',
      runbook: 'attempts-fail.md',
      unit: 'ops',
      ifEmpty: 'no failures',
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
      bad: "Longer than before: the handler, or a service that it calls, has become slower, so fewer tasks end per slot. Near the definition's timeout, attempts begin to time out.",
      runbook: 'attempts-slower.md',
      unit: 's',
      queries: [0.5, 0.95, 0.99].map((quantile) =>
        query(
          quantileOf(quantile, `bullpen_attempt_duration_seconds_bucket{${OF_TASK}}`, 'task'),
          `p${quantile * 100} {{task}}`,
        ),
      ),
    },
    {
      title: 'Wait',
      description: "Time from the moment a task was ready to its first attempt's start.",
      bad: 'Long while slots are busy: the workers do not keep up. Long while slots are idle: check Redis.',
      runbook: 'backlog-grows.md',
      unit: 's',
      queries: [
        query(quantileOf(0.5, `bullpen_task_wait_seconds_bucket{${OF_TASK}}`, 'task'), 'p50 {{task}}'),
        query(quantileOf(0.99, `bullpen_task_wait_seconds_bucket{${OF_TASK}}`, 'task'), 'p99 {{task}}'),
        query(`max by (task) (bullpen_slo_start_within_seconds{${OF_TASK}})`, 'startWithin {{task}}'),
      ],
    },
    {
      title: 'Tasks that become dead',
      description: 'Tasks that become dead per second, by task definition.',
      bad: 'Any: these tasks do not run again until a request retries them.',
      runbook: 'dead-tasks.md',
      unit: 'ops',
      ifEmpty: 'no task has become dead',
      queries: [query(`sum by (task) (rate(bullpen_tasks_dead_total{${OF_TASK}}[${RATE}]))`, '{{task}}')],
    },
    {
      title: 'Time from enqueue to end',
      description:
        'Time from the enqueueing of a task to its end, including its delay, wait, attempts and retries. A caller that waits for the result waits this long.',
      bad: 'Longer than before, although attempts are not: tasks wait longer, or are retried more often.',
      runbook: 'backlog-grows.md',
      unit: 's',
      queries: [0.5, 0.95].map((quantile) =>
        query(
          quantileOf(quantile, `bullpen_task_duration_seconds_bucket{${OF_TASK}}`, 'task'),
          `p${quantile * 100} {{task}}`,
        ),
      ),
    },
    {
      title: 'Tasks that started within their SLO',
      description:
        'Of the tasks that started or expired within the last hour, the share that started within the startWithin of their definition or queue, and the share that should.',
      bad: 'The first share stays below the second one: the objective is missed.',
      runbook: 'tasks-start-late.md',
      unit: 'percentunit',
      max: 1,
      ifEmpty: 'no task has an SLO',
      queries: [
        query(
          `1 - sum by (queue, task) (rate(bullpen_slo_late_tasks_total{${OF_TASK}}[1h])) / sum by (queue, task) (rate(bullpen_slo_tasks_total{${OF_TASK}}[1h]))`,
          '{{task}}',
        ),
        query(`max by (queue, task) (bullpen_slo_objective_ratio{${OF_TASK}})`, '{{task}} objective'),
      ],
    },
    {
      title: 'Dead tasks by code',
      description: 'Tasks of the chosen queues that become dead per second, by the error code of their last attempt.',
      bad: 'A code that was not there before. "poison" is a task that has killed its process too often.',
      runbook: 'dead-tasks.md',
      unit: 'ops',
      ifEmpty: 'no task has become dead',
      queries: [
        query(
          `sum by (queue, code) (rate(bullpen_tasks_dead_by_code_total{${OF_QUEUE}}[${RATE}]))`,
          '{{queue}} {{code}}',
        ),
      ],
    },
    {
      title: 'Cancelled and expired',
      description: 'Tasks per second that were ended by request, and tasks that passed their queue timeout.',
      bad: 'Any expired tasks: they waited for too long, so the queue has too few slots or was stuck.',
      runbook: 'backlog-grows.md',
      unit: 'ops',
      ifEmpty: 'no task was cancelled or has expired',
      queries: [
        query(`sum by (task) (rate(bullpen_tasks_cancelled_total{${OF_TASK}}[${RATE}]))`, 'cancelled {{task}}'),
        query(`sum by (task) (rate(bullpen_tasks_expired_total{${OF_TASK}}[${RATE}]))`, 'expired {{task}}'),
      ],
    },
    {
      title: 'Retries',
      description: 'Attempts per second after which the task is tried again.',
      bad: 'A rise: more attempts fail, and the retries add load to whatever is failing.',
      runbook: 'attempts-fail.md',
      unit: 'ops',
      ifEmpty: 'no retries',
      queries: [
        query(
          `sum by (task) (rate(bullpen_attempts_ended_total{${OF_TASK}, verdict="retrying"}[${RATE}]))`,
          '{{task}}',
        ),
      ],
    },
    {
      title: 'Dropped results',
      description:
        'Late results and refused commits per second. A late result is one that a handler returned after its attempt had ended. A commit is refused if the attempt has lost its task.',
      bad: 'Late results: the handler ignores ctx.signal. Refused commits: the task runs again, so its side effects may happen twice.',
      runbook: 'duplicates.md',
      unit: 'ops',
      ifEmpty: 'no result was dropped',
      queries: [
        query(`sum by (task) (rate(bullpen_late_results_total{${OF_TASK}}[${RATE}]))`, 'late {{task}}'),
        query(
          `sum by (task, reason) (rate(bullpen_commits_refused_total{${OF_TASK}}[${RATE}]))`,
          'refused {{task}} {{reason}}',
        ),
      ],
    },
  ],
}
