// The panels that say whether tasks flow through all queues of the fleet.
import { query, type Section } from '../panel.ts'
import { RATE } from './selectors.ts'

export const flowSection: Section = {
  title: 'Flow',
  panels: [
    {
      title: 'Tasks of all queues',
      description: 'Tasks that have not ended, by status.',
      bad: 'Waiting or retrying tasks that keep growing: the workers do not keep up, or attempts fail.',
      runbook: 'backlog-grows.md',
      unit: 'short',
      stacked: true,
      queries: [
        query(
          'sum by (status) (max by (queue, status) (bullpen_queue_tasks{status=~"scheduled|waiting|active|retrying"}))',
          '{{status}}',
        ),
      ],
    },
    {
      title: 'Tasks in and out',
      description: 'Tasks enqueued and tasks ended per second, in all queues.',
      bad: 'More in than out for a long time: the backlog grows. Nothing out although tasks wait: the fleet is stuck.',
      runbook: 'backlog-grows.md',
      unit: 'ops',
      queries: [
        query(`sum(rate(bullpen_tasks_enqueued_total[${RATE}]))`, 'enqueued'),
        query(`sum(max by (queue) (rate(bullpen_queue_tasks_ended_total[${RATE}])))`, 'ended'),
      ],
    },
    {
      title: 'Waiting tasks',
      description: 'Tasks that the next free slot takes, by queue.',
      bad: 'A queue that keeps growing. If its oldest task gets older as well, its workers do not keep up.',
      runbook: 'backlog-grows.md',
      unit: 'short',
      queries: [query('max by (queue) (bullpen_queue_tasks{status="waiting"})', '{{queue}}')],
    },
    {
      title: 'Oldest task of each queue',
      description: 'How long the task that starts next has been waiting, by queue.',
      bad: 'Above the time within which your tasks should start. The alert fires above 5 minutes.',
      runbook: 'nothing-is-running.md',
      unit: 's',
      queries: [query('max by (queue) (bullpen_queue_oldest_seconds)', '{{queue}}')],
    },
    {
      title: 'Share of slots in use',
      description: 'Slots that run an attempt, as a share of all slots of the queue.',
      bad: 'Near 100%: tasks have to wait. Near 0% although tasks wait: something keeps the workers from starting them.',
      runbook: 'slots-idle.md',
      unit: 'percentunit',
      max: 1,
      queries: [query('sum by (queue) (bullpen_pool_slots_busy) / sum by (queue) (bullpen_pool_slots)', '{{queue}}')],
    },
    {
      title: 'Failing attempts',
      description: 'Attempts that failed per second, by queue.',
      bad: 'Any rise: a service that handlers call is down, or a new version has a bug.',
      runbook: 'attempts-fail.md',
      unit: 'ops',
      ifEmpty: 'no failures',
      queries: [query(`sum by (queue) (rate(bullpen_attempt_failures_total[${RATE}]))`, '{{queue}}')],
    },
    {
      title: 'Dead tasks of each queue',
      description: 'Dead tasks that are still stored, by queue.',
      bad: 'Any growth: tasks have failed for good and stay until they are retried or deleted.',
      runbook: 'dead-tasks.md',
      unit: 'short',
      queries: [query('max by (queue) (bullpen_queue_tasks{status="dead"})', '{{queue}}')],
    },
    {
      title: 'Draining pools',
      description: 'Pools that are draining, by queue.',
      bad: 'Above 0 for longer than the drain timeout: a drain is stuck. During a deploy, a few are normal.',
      runbook: 'drain-stuck.md',
      unit: 'short',
      queries: [query('sum by (queue) (bullpen_pool_state{state="SHUTTING_DOWN"})', '{{queue}}')],
    },
    {
      title: 'Accepted and refused tasks',
      description:
        'Tasks that the API has stored per second, and tasks that it has refused because of a limit or the state of Redis.',
      bad: 'Any refused tasks: producers lose time or tasks, because a queue is full, an API key exceeds its rate, or Redis has no room.',
      runbook: 'producers-slowed.md',
      unit: 'ops',
      queries: [
        query(`sum(rate(bullpen_tasks_enqueued_total[${RATE}]))`, 'accepted'),
        query(`sum by (limit) (rate(bullpen_tasks_refused_total[${RATE}]))`, 'refused: {{limit}}'),
        query(`sum by (code) (rate(bullpen_enqueues_refused_total[${RATE}]))`, 'refused: {{code}}'),
      ],
    },
  ],
}
