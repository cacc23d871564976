// The selectors and expressions that the panels share.

/** The queues that the dashboard's variables choose. */
export const OF_QUEUE = 'queue=~"$queue"'
/** The tasks that the dashboard's variables choose. */
export const OF_TASK = 'queue=~"$queue", task=~"$task"'
/** The workers that the dashboard's variables choose. */
export const OF_WORKER = 'instance=~"$worker"'
export const RATE = '$__rate_interval'

/** Returns the quantile of a histogram, whose buckets may have a selector, for each value of these labels. */
export function quantileOf(quantile: number, buckets: string, ...labels: readonly string[]): string {
  return `histogram_quantile(${quantile}, sum by (${['le', ...labels].join(', ')}) (rate(${buckets}[${RATE}])))`
}
