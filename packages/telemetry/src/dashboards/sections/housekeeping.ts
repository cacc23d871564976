// The panels of the leader's work: housekeeping, schedules, outboxes and the counts of tasks.
import { query, type Section } from '../panel.ts'
import { RATE } from './selectors.ts'

export const housekeepingSection: Section = {
  title: 'Housekeeping',
  panels: [
    {
      title: 'Leader',
      description: "The process that does the namespace's housekeeping.",
      bad: 'A gap: there was no leader. Frequent changes: processes restart, or lose their connection to Redis.',
      runbook: 'no-leader.md',
      unit: 'short',
      queries: [query('bullpen_leader == 1', '{{instance}}')],
    },
    {
      title: 'Housekeeping failures',
      description: "How often per second a part of a queue's housekeeping failed.",
      bad: "Any: the leader's log has the error. The other parts are not affected.",
      runbook: 'housekeeping-fails.md',
      unit: 'ops',
      ifEmpty: 'no failures',
      queries: [
        query(`sum by (queue, duty) (rate(bullpen_housekeeping_failures_total[${RATE}]))`, '{{queue}} {{duty}}'),
      ],
    },
    {
      title: 'Schedules in trouble',
      description:
        'Schedules whose last run is dead or expired (failing), whose ticks have found the previous run unfinished for an hour (overlapping), or that have missed a tick within the last day (missed).',
      bad: 'Any: "bullpen schedules list --trouble" lists them.',
      runbook: 'schedule-in-trouble.md',
      unit: 'short',
      ifEmpty: 'no schedule is in trouble',
      queries: [query('max by (queue, trouble) (bullpen_troubled_schedules) > 0', '{{queue}} {{trouble}}')],
    },
    {
      title: 'Oldest follow-up task',
      description: 'How long the oldest follow-up task has been in the outbox of its queue.',
      bad: 'Above a few seconds: the process that should forward it is gone or cannot reach the target queue.',
      runbook: 'outbox-grows.md',
      unit: 's',
      queries: [query('max by (queue) (bullpen_outbox_oldest_seconds)', '{{queue}}')],
    },
    {
      title: 'Follow-up tasks in outboxes',
      description: 'Follow-up tasks that are not in their own queue yet, by the queue of the task that released them.',
      bad: "Any growth. At 10,000, workers stop fetching the queue's tasks.",
      runbook: 'outbox-grows.md',
      unit: 'short',
      queries: [query('max by (queue) (bullpen_outbox_entries)', '{{queue}}')],
    },
    {
      title: 'Unaccounted tasks',
      description: 'Accepted tasks that have no status and have not been removed.',
      bad: 'Other than 0 for more than a few minutes: a defect. Negative: plain BullMQ has added tasks.',
      runbook: 'unaccounted-tasks.md',
      unit: 'short',
      signed: true,
      queries: [query('max by (queue) (bullpen_unaccounted_tasks)', '{{queue}}')],
    },
    {
      title: "Workers without Bullpen's backend",
      description: "BullMQ Workers that use a queue with BullMQ's own scripts.",
      bad: 'Any: what they end has no follow-ups. "bullpen doctor" shows where they run.',
      runbook: 'unaccounted-tasks.md',
      unit: 'short',
      ifEmpty: 'none',
      queries: [query('max by (queue) (bullpen_unattached_workers) > 0', '{{queue}}')],
    },
    {
      title: 'Repaired counts',
      description: 'Index entries and counts that leaders have repaired so far.',
      bad: 'Any growth: plain BullMQ, or a person, changes tasks of the queue directly.',
      runbook: 'unaccounted-tasks.md',
      unit: 'short',
      queries: [query('max by (queue) (bullpen_index_repairs)', '{{queue}}')],
    },
  ],
}
