// Lists the metrics that have no series in the test that queries every panel, or none that a panel shows, and says why.

export const UNSEEN_METRICS: Readonly<Record<string, string>> = {
  bullpen_commits_refused_total: 'no attempt loses its task',
  bullpen_housekeeping_failures_total: 'no housekeeping fails',
  bullpen_pool_paused: 'no pool is paused: the queue as a whole is',
  bullpen_troubled_schedules: 'no schedule is in trouble',
  bullpen_unattached_workers: 'no Worker lacks the backend',
}
