// The panels of attempts: how they end, how long they take, and what fails.
import { ATTEMPT_STATE_LABELS } from '@bullpen/contract'
import { query, type Section } from '../grafana.ts'
import { OF_QUEUE, OF_TASK, quantileOf, RATE } from './selectors.ts'

export const attemptSection: Section = {
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
      title: 'Tasks that started within their SLO',
      description:
        'Of the tasks that started or expired within the last hour, the share that started within the startWithin of their definition or queue, and the share that should. If the first share stays below the second one, the objective is missed.',
      runbook: 'tasks-start-late.md',
      unit: 'percentunit',
      max: 1,
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
}
