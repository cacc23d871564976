// The panels of groups and of runs of pipelines: how many are unfinished, how they end and what limits them.
import { query, type Section } from '../panel.ts'
import { quantileOf, RATE } from './selectors.ts'

export const groupAndRunSection: Section = {
  title: 'Groups and runs of pipelines',
  panels: [
    {
      title: 'Unfinished groups',
      description: 'Groups that have not ended.',
      bad: 'Steady growth: members do not end, or producers never seal their groups, which then end with their total timeout.',
      runbook: 'unfinished-groups-and-runs.md',
      unit: 'short',
      queries: [query('max(bullpen_unfinished_groups)', 'groups')],
    },
    {
      title: 'Groups ended',
      description: 'Groups that have ended per second, by their result.',
      bad: 'Results other than completed: members are dead, or the groups were cancelled or have timed out.',
      runbook: 'unfinished-groups-and-runs.md',
      unit: 'ops',
      ifEmpty: 'no group has ended',
      queries: [query(`sum by (result) (rate(bullpen_groups_ended_total[${RATE}]))`, '{{result}}')],
    },
    {
      title: 'Unfinished runs',
      description: 'Runs of pipelines that have not ended.',
      bad: 'Steady growth: the stages do not keep up. "bullpen runs list" lists the runs. A run ends with its total timeout at the latest.',
      runbook: 'unfinished-groups-and-runs.md',
      unit: 'short',
      queries: [query('max(bullpen_unfinished_runs)', 'runs')],
    },
    {
      title: 'Runs ended',
      description: 'Runs of pipelines that have ended per second, by their result.',
      bad: 'Results other than completed: the source, a stage or the reduction has failed, or the run was cancelled or has timed out.',
      runbook: 'unfinished-groups-and-runs.md',
      unit: 'ops',
      queries: [
        query(`sum by (pipeline, result) (rate(bullpen_runs_ended_total[${RATE}]))`, '{{pipeline}} {{result}}'),
      ],
    },
    {
      title: 'Duration of runs',
      description: 'The median time from the start of a run to its end.',
      bad: 'Longer than usual: a stage has less concurrency than the run needs, or its handlers have become slower.',
      runbook: 'unfinished-groups-and-runs.md',
      unit: 's',
      queries: [query(quantileOf(0.5, 'bullpen_run_duration_seconds_bucket', 'pipeline'), '{{pipeline}}')],
    },
    {
      title: 'Items of pipelines',
      description: 'Items per second that have left a stage of a run.',
      bad: 'Failed items, or a rate of 0 while a run is unfinished. The stage with the lowest rate limits the others; give it more concurrency or more workers.',
      runbook: 'unfinished-groups-and-runs.md',
      unit: 'ops',
      queries: [
        query(
          `sum by (pipeline, stage, outcome) (rate(bullpen_run_items_total[${RATE}]))`,
          '{{pipeline}} {{stage}} {{outcome}}',
        ),
      ],
    },
  ],
}
