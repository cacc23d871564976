// The panels of the API: its requests, their times and errors, and how its processes are.
import { query, type Section } from '../panel.ts'
import { quantileOf, RATE } from './selectors.ts'

const APIS = 'on (job, instance) bullpen_build_info{role="api"}'

export const httpSection: Section = {
  title: 'API',
  panels: [
    {
      title: 'HTTP requests',
      description: "Requests per second, by the route's pattern.",
      bad: 'A sudden fall: clients cannot reach the API. A sudden rise of one route: a client repeats its requests.',
      runbook: 'api-errors.md',
      unit: 'reqps',
      queries: [query(`sum by (method, route) (rate(bullpen_http_requests_total[${RATE}]))`, '{{method}} {{route}}')],
    },
    {
      title: 'HTTP p99',
      description:
        'The 99th percentile of the time to respond, by route. A request that waits for a result may take as long as the caller is willing to wait.',
      bad: 'Above 1 s for a route that does not wait for results: the API or Redis is slow.',
      runbook: 'enqueue-slow.md',
      unit: 's',
      queries: [
        query(
          quantileOf(0.99, 'bullpen_http_request_duration_seconds_bucket', 'method', 'route'),
          '{{method}} {{route}}',
        ),
      ],
    },
    {
      title: 'HTTP 500 and 503',
      description: 'Server errors per second.',
      bad: 'Any. If more than 5% of all requests fail, the alert fires.',
      runbook: 'api-errors.md',
      unit: 'reqps',
      ifEmpty: 'no server errors',
      queries: [
        query(
          `sum by (route, status) (rate(bullpen_http_requests_total{status=~"500|503"}[${RATE}]))`,
          '{{route}} {{status}}',
        ),
      ],
    },
    {
      title: 'Event streams',
      description: 'Streams of events that readers have open, by what they are about.',
      bad: 'Steady growth: a client opens streams and does not close them.',
      runbook: 'api-errors.md',
      unit: 'short',
      queries: [query('sum by (subject) (bullpen_event_streams)', '{{subject}}')],
    },
    {
      title: 'Event-loop lag of the API, p99',
      description: 'How late timers run, in the slowest 1% of cases.',
      bad: "Above 0.1 s: the API's CPU is used up, and every request is slow.",
      runbook: 'enqueue-slow.md',
      unit: 's',
      queries: [query(`nodejs_eventloop_lag_p99_seconds and ${APIS}`, '{{instance}}')],
    },
    {
      title: 'CPU of the API',
      description: 'CPU time that each API process uses per second. 1 is one core.',
      bad: 'Near 1: run more replicas, or raise the CPU limit.',
      runbook: 'enqueue-slow.md',
      unit: 'short',
      queries: [query(`rate(process_cpu_seconds_total[${RATE}]) and ${APIS}`, '{{instance}}')],
    },
    {
      title: 'Memory of the API',
      description: 'Resident memory.',
      bad: 'Steady growth until the process is killed: its open requests then fail.',
      runbook: 'api-errors.md',
      unit: 'bytes',
      queries: [query(`process_resident_memory_bytes and ${APIS}`, '{{instance}}')],
    },
    {
      title: 'Failed reads during scrapes',
      description: 'Reads per second that failed during a scrape.',
      bad: 'Any: the gauges that the read would have set are missing, so alerts about them cannot fire.',
      runbook: 'metrics-missing.md',
      unit: 'ops',
      queries: [query(`sum by (instance) (rate(bullpen_scrape_failures_total[${RATE}]))`, '{{instance}}')],
    },
  ],
}
