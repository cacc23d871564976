// The selectors and expressions that the panels of a dashboard share.

/** The tasks that the dashboard's variables choose. */
export const OF_TASK = 'queue=~"$queue", task=~"$task"'
export const OF_QUEUE = 'queue=~"$queue"'
export const RATE = '$__rate_interval'

/** Returns the quantile of a histogram by task. */
export function quantileOf(quantile: number, buckets: string): string {
  return `histogram_quantile(${quantile}, sum by (le, task) (rate(${buckets}{${OF_TASK}}[${RATE}])))`
}
