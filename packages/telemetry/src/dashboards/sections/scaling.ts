// The panels of autoscaling: how many workers a queue has, and how many it needs.
import { BUSY_SHARE } from '../../scaling/scaling-rules.ts'
import { query, type Section } from '../panel.ts'
import { OF_QUEUE } from './selectors.ts'

export const scalingSection: Section = {
  title: 'Scaling',
  panels: [
    {
      title: 'Backlog in worker-seconds',
      description:
        'How long a single worker would need to run the waiting tasks, and how much of this time each worker may have, which follows from the SLOs of the queue. The first divided by the second is the number of workers that an autoscaler wants.',
      bad: 'Growth although workers are added: the tasks wait for something else.',
      runbook: 'backlog-grows.md',
      unit: 's',
      queries: [
        query(`max by (queue) (bullpen:queue_backlog_seconds{${OF_QUEUE}})`, '{{queue}}'),
        query(`max by (queue) (bullpen:queue_backlog_target_seconds{${OF_QUEUE}})`, '{{queue}} for each worker'),
      ],
    },
    {
      title: 'Workers',
      description: `The workers that serve the queue, and those that an autoscaler wants: as many as the backlog needs, and so many that at most ${100 * BUSY_SHARE}% of the slots are busy. The larger number applies.`,
      bad: 'Fewer workers than wanted for minutes: the autoscaler has reached its maximum or cannot read the series.',
      runbook: 'backlog-grows.md',
      unit: 'short',
      queries: [
        query(`count by (queue) (bullpen_pool_slots{${OF_QUEUE}} > 0)`, '{{queue}} present'),
        query(`ceil(max by (queue) (bullpen:queue_backlog_workers{${OF_QUEUE}}))`, '{{queue}} for the backlog'),
        query(
          `ceil(max by (queue) (bullpen:queue_busy_workers{${OF_QUEUE}}) / ${BUSY_SHARE})`,
          '{{queue}} for the busy slots',
        ),
      ],
    },
    {
      title: 'Run time assumed for scaling',
      description:
        'The mean run time from which the backlog is computed, and the expectedDuration of the definitions, which is used until an attempt has ended.',
      bad: 'Far from the real run time: there are too many or too few workers. Set expectedDuration if a queue is new or often empty.',
      runbook: 'backlog-grows.md',
      unit: 's',
      queries: [
        query(`max by (queue) (bullpen:queue_run_seconds{${OF_QUEUE}})`, '{{queue}}'),
        query(`max by (queue, task) (bullpen_task_expected_seconds{${OF_QUEUE}})`, '{{task}} expected'),
      ],
    },
  ],
}
