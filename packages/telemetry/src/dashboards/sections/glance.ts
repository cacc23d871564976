// The panels that say at a glance whether the fleet is well.
import { query, type Section } from '../panel.ts'

export const glanceSection: Section = {
  title: 'At a glance',
  panels: [
    {
      title: 'Alerts',
      description: "Bullpen's firing alerts.",
      bad: 'Any alert. Its summary says what is wrong, and its annotation "runbook" names the page to open.',
      runbook: 'metrics-missing.md',
      unit: 'short',
      kind: 'stat',
      ifEmpty: 'none',
      thresholds: [
        { from: 0, colour: 'green' },
        { from: 1, colour: 'red' },
      ],
      queries: [
        query(
          'count by (alertname) (ALERTS{alertname=~"Bullpen.+", alertstate="firing", namespace=~"$namespace"})',
          '{{alertname}}',
        ),
      ],
    },
    {
      title: 'Processes',
      description: 'The API processes and the workers that Prometheus scrapes, by version.',
      bad: 'Fewer than you have started: a process is gone or cannot be scraped. More than one version, except during a deploy: the deploy has not finished.',
      runbook: 'metrics-missing.md',
      unit: 'short',
      kind: 'stat',
      queries: [query('count by (role, version) (bullpen_build_info)', '{{role}} {{version}}')],
    },
    {
      title: 'Leaders',
      description: "The processes that do the namespace's housekeeping.",
      bad: '0 for more than a few seconds: tasks of dead workers are not recovered, and schedules do not run.',
      runbook: 'no-leader.md',
      unit: 'short',
      kind: 'stat',
      width: 4,
      thresholds: [
        { from: 0, colour: 'red' },
        { from: 1, colour: 'green' },
        { from: 2, colour: 'orange' },
      ],
      queries: [query('sum(bullpen_leader)', 'leaders')],
    },
    {
      title: 'Redis reachable',
      description: '1 if every API process reaches Redis.',
      bad: '0: at least one API process cannot reach Redis.',
      runbook: 'redis-unreachable.md',
      unit: 'short',
      kind: 'stat',
      width: 4,
      thresholds: [
        { from: 0, colour: 'red' },
        { from: 1, colour: 'green' },
      ],
      queries: [query('min(bullpen_redis_up)', 'Redis')],
    },
  ],
}
