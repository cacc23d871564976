// The panels of workers: whether their slots are used, stuck or draining.
import { POOL_STATE_LABELS } from '@bullpen/contract'
import { BACKLOG_SECONDS_PER_WORKER, BUSY_SHARE } from '../../scaling/scaling-rules.ts'
import { query, type Section } from '../grafana.ts'
import { OF_QUEUE } from './selectors.ts'

/** Both ends of the scale need attention, because a saturated pool delays tasks and an idle one costs money. */
const IDLE_BELOW = 0.1
const SATURATED_ABOVE = 0.9

export const workerSection: Section = {
  title: 'Workers',
  panels: [
    {
      title: 'Busy slots',
      description: "Busy slots and total slots, across all of the queue's workers. A busy slot is running an attempt.",
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
      title: 'Backlog of one worker',
      description:
        'How long a single worker would need to run the waiting tasks. Autoscalers divide this time by their target, which gives the number of workers. If it grows although workers are added, the tasks wait for something else.',
      runbook: 'backlog-grows.md',
      unit: 's',
      queries: [query(`max by (queue) (bullpen:queue_backlog_seconds{${OF_QUEUE}})`, '{{queue}}')],
    },
    {
      title: 'Workers',
      description: `The workers that serve the queue, and those that an autoscaler wants: for each ${BACKLOG_SECONDS_PER_WORKER} s of backlog, and so that at most ${100 * BUSY_SHARE}% of the slots are busy. The larger number counts. If fewer workers are present for minutes, the autoscaler has reached its maximum or cannot read the series.`,
      runbook: 'backlog-grows.md',
      unit: 'short',
      queries: [
        query(`count by (queue) (bullpen_pool_slots{${OF_QUEUE}} > 0)`, '{{queue}} present'),
        query(
          `ceil(max by (queue) (bullpen:queue_backlog_seconds{${OF_QUEUE}}) / ${BACKLOG_SECONDS_PER_WORKER})`,
          '{{queue}} for the backlog',
        ),
        query(
          `ceil(max by (queue) (bullpen:queue_busy_workers{${OF_QUEUE}}) / ${BUSY_SHARE})`,
          '{{queue}} for the busy slots',
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
}
