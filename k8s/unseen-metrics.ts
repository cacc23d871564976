// Lists the metrics that have no series in the test that queries every panel, or none that a panel shows, and says why.

export const UNSEEN_METRICS: Readonly<Record<string, string>> = {
  bullpen_commits_refused_total: 'no attempt loses its task',
  bullpen_event_loop_stalls_total: 'no handler blocks the event loop',
  bullpen_housekeeping_failures_total: 'no housekeeping fails',
  bullpen_isolates_replaced_total: 'no handler is isolated',
  bullpen_late_lock_renewals_total: 'Redis always responds',
  bullpen_slots_restarted_total: 'Redis is always reachable',
  bullpen_troubled_schedules: 'no schedule is in trouble',
}
