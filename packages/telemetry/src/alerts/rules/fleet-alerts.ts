// Defines the alerts about the installation as a whole: its leader, its API and its scrapes.
import { type AlertRule, alert } from '../alert-rule.ts'
import { growth, IS_OURS, largest, on, rate, sum } from '../expressions.ts'

/**
 * The condition that an installation has no process of this role, although another process of it, or one of this role, was scraped within
 * the last hour. An installation that has been gone for longer counts as removed, unless there is no other.
 */
const missing = (role: 'api' | 'worker'): string => {
  const known = 'max_over_time(bullpen_build_info[1h])'
  const present = `bullpen_build_info{role="${role}"}`
  return `${largest(known)}
unless ${on()} ${largest(present)}
or absent(${present}) unless on () ${known}`
}

const UNFINISHED = largest('sum without (status) (bullpen_queue_tasks{status=~"waiting|active"})', 'queue')
/** A gauge of each queue that has tasks, or 0 where it is not known. */
const orZero = (name: string): string => `(${largest(name, 'queue')} or ${largest('bullpen_queue_tasks', 'queue')} * 0)`
/** How many tasks of each queue a worker would run: no blocked ones, and none of a paused or drained queue. */
const RUNNABLE = `clamp_min(${UNFINISHED} - ${on('queue')} ${orZero('bullpen_queue_blocked_tasks')}, 0)
* ${on('queue')} (${orZero('bullpen_queue_paused')} == bool 0)
* ${on('queue')} (${orZero('bullpen_queue_draining')} == bool 0)`

export const FLEET_ALERTS: readonly AlertRule[] = [
  alert({
    name: 'BullpenNoLeader',
    expr: `${sum('bullpen_leader')} == 0`,
    for: '1m',
    severity: 'critical',
    summary:
      'No process has led the namespace for a minute, so tasks of dead workers are not recovered and schedules do not run',
    runbook: 'no-leader.md',
  }),
  alert({
    name: 'BullpenHousekeepingFails',
    expr: `${growth('bullpen_housekeeping_failures_total', '10m', 'queue', 'duty')} >= 3`,
    severity: 'warning',
    summary:
      "The leader's duty {{ $labels.duty }} has failed at least 3 times within 10 minutes for the queue {{ $labels.queue }}",
    figure: '{{ printf `%.0f` $value }}',
    runbook: 'housekeeping-fails.md',
  }),
  alert({
    name: 'BullpenHttpErrors',
    // With few requests, a single error is a large share of them. 501 and 505 do not count, because callers cause them.
    expr: `${rate('bullpen_http_requests_total{status=~"500|503"}', '5m')} / ${rate('bullpen_http_requests_total', '5m')} > 0.05
and ${growth('bullpen_http_requests_total{status=~"500|503"}', '5m')} >= 5`,
    for: '5m',
    severity: 'critical',
    summary: 'For 5 minutes, the API has answered more than 5% of its requests, and at least 5, with a server error',
    figure: '{{ $value | humanizePercentage }}',
    runbook: 'api-errors.md',
  }),
  alert({
    name: 'BullpenApiMissing',
    expr: missing('api'),
    for: '5m',
    severity: 'critical',
    summary: 'Prometheus has not scraped any API process of the installation for 5 minutes',
    runbook: 'metrics-missing.md',
  }),
  alert({
    name: 'BullpenWorkersMissing',
    // Workers may be scaled to zero while there is nothing to do.
    expr: `(
${missing('worker')}
)
unless ${on()} ${sum(RUNNABLE)} == 0`,
    for: '5m',
    severity: 'critical',
    summary:
      'Prometheus has not scraped any worker of the installation for 5 minutes, although tasks are waiting or active, or their numbers are unknown',
    runbook: 'metrics-missing.md',
  }),
  alert({
    name: 'BullpenScrapeFails',
    expr: `up == 0 and ${IS_OURS}`,
    for: '5m',
    severity: 'warning',
    summary: 'Prometheus has not been able to scrape {{ $labels.instance }} for 5 minutes',
    runbook: 'metrics-missing.md',
  }),
  alert({
    name: 'BullpenGaugesMissing',
    // The counter grows by the number of reads that fail in a scrape.
    expr: `${largest('changes(bullpen_scrape_failures_total[10m])', 'instance')} >= 3`,
    severity: 'warning',
    summary: '{{ $labels.instance }} could not read all of its gauges in at least 3 scrapes within 10 minutes',
    figure: '{{ $value }} scrapes',
    runbook: 'metrics-missing.md',
  }),
]
