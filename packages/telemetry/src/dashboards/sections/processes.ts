// The panels of the API, Redis and the processes: whether they respond, and what they refuse.
import { query, type Section } from '../grafana.ts'
import { RATE } from './selectors.ts'

export const processSection: Section = {
  title: 'API and processes',
  panels: [
    {
      title: 'HTTP requests',
      description: 'Requests per second, by route.',
      unit: 'reqps',
      queries: [query(`sum by (method, route) (rate(bullpen_http_requests_total[${RATE}]))`, '{{method}} {{route}}')],
    },
    {
      title: 'Event streams',
      description: 'Streams of events that readers have open, by what they are about.',
      unit: 'short',
      queries: [query('sum by (subject) (bullpen_event_streams)', '{{subject}}')],
    },
    {
      title: 'HTTP p99',
      description: 'A request that waits for a result may take as long as the caller is willing to wait.',
      runbook: 'enqueue-slow.md',
      unit: 's',
      queries: [
        query(
          `histogram_quantile(0.99, sum by (le, method, route) (rate(bullpen_http_request_duration_seconds_bucket[${RATE}])))`,
          '{{method}} {{route}}',
        ),
      ],
    },
    {
      title: 'HTTP 5xx',
      description: 'Server errors per second.',
      runbook: 'api-errors.md',
      unit: 'reqps',
      queries: [
        query(
          `sum by (route, status) (rate(bullpen_http_requests_total{status=~"5.."}[${RATE}]))`,
          '{{route}} {{status}}',
        ),
      ],
    },
    {
      title: 'Redis reachable',
      description: '1 if every process can reach Redis, 0 if at least one cannot.',
      runbook: 'redis-away.md',
      unit: 'short',
      kind: 'stat',
      width: 4,
      thresholds: [
        { from: 0, colour: 'red' },
        { from: 1, colour: 'green' },
      ],
      queries: [query('min(bullpen_redis_up)', 'Redis')],
    },
    {
      title: 'Versions',
      description: 'During a deploy, a role has more than one version.',
      unit: 'short',
      kind: 'stat',
      width: 4,
      queries: [query('count by (role, version) (bullpen_build_info)', '{{role}} {{version}}')],
    },
    {
      title: 'Redis memory',
      description:
        'The share of its memory that Redis uses, and the share that idempotency keys take. New tasks are refused at the watermark, which is 80% by default, and tasks with a new idempotency key if such keys take 25%.',
      runbook: 'redis-full.md',
      unit: 'percentunit',
      queries: [
        query('max(bullpen_redis_memory_used_bytes / bullpen_redis_memory_limit_bytes)', 'Redis'),
        query('max(bullpen_idempotency_records_bytes / bullpen_redis_memory_limit_bytes)', 'idempotency keys'),
      ],
    },
    {
      title: 'Unsafe settings of Redis',
      description:
        "1 for each check of Redis's settings that fails, otherwise 0. If persistence or eviction fails, Redis may lose tasks.",
      runbook: 'redis-unsafe.md',
      unit: 'short',
      queries: [query('max by (check) (bullpen_redis_unsafe)', '{{check}}')],
    },
    {
      title: 'Refused tasks',
      description: 'Tasks per second that were refused because of the state of the queue or Redis.',
      runbook: 'redis-full.md',
      unit: 'ops',
      queries: [query(`sum by (queue, code) (rate(bullpen_enqueues_refused_total[${RATE}]))`, '{{queue}} {{code}}')],
    },
    {
      title: 'Event-loop lag, p99',
      description:
        'If the lag is above a few tens of milliseconds, a handler is blocking its process, and its task should be isolated.',
      runbook: 'event-loop-stalled.md',
      unit: 's',
      queries: [query('nodejs_eventloop_lag_p99_seconds and on (instance) bullpen_build_info', '{{instance}}')],
    },
    {
      title: 'Event-loop stalls',
      description:
        'How often per second a task blocked the event loop for longer than eventLoopStallWarning. The log names the function, the file and the line.',
      runbook: 'event-loop-stalled.md',
      unit: 'ops',
      queries: [query(`sum by (task) (rate(bullpen_event_loop_stalls_total[${RATE}]))`, '{{task}}')],
    },
    {
      title: 'Leader',
      description:
        "The process that does the namespace's housekeeping. If there is no leader for more than a few seconds, dead workers' tasks are not recovered.",
      runbook: 'no-leader.md',
      unit: 'short',
      queries: [query('bullpen_leader == 1', '{{instance}}')],
    },
    {
      title: 'Housekeeping failures',
      description:
        "How often per second a part of a queue's housekeeping failed. The leader's log has the error. The other parts are not affected.",
      runbook: 'housekeeping-fails.md',
      unit: 'ops',
      queries: [
        query(`sum by (queue, duty) (rate(bullpen_housekeeping_failures_total[${RATE}]))`, '{{queue}} {{duty}}'),
      ],
    },
    {
      title: 'Clock skew',
      description:
        "How far each machine's clock is ahead of Redis's clock. The value is negative if the machine's clock is behind. Tasks use Redis's clock.",
      runbook: 'clock-skew.md',
      unit: 's',
      queries: [query('bullpen_clock_skew_seconds', '{{instance}}')],
    },
    {
      title: 'Memory',
      description: 'Resident memory, by process.',
      unit: 'bytes',
      queries: [query('process_resident_memory_bytes and on (instance) bullpen_build_info', '{{instance}}')],
    },
  ],
}
