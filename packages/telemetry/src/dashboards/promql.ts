// Finds the metrics that a PromQL expression reads, rejects those that are not published, and restricts them to an installation.
import { nearest } from '@bullpen/contract/internal'
import { METRICS, PROCESS_METRICS } from '../metrics/metrics-table.ts'
import { RECORDED_METRICS } from '../metrics/recorded-metrics.ts'

const PUBLISHED: readonly string[] = [
  ...Object.entries(METRICS).flatMap(([name, row]) =>
    'buckets' in row ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  ),
  ...PROCESS_METRICS,
  ...Object.keys(RECORDED_METRICS),
]

/**
 * Returns each metric in an expression once. A name is treated as a metric if it begins with `bullpen_`, `bullpen:`, `nodejs_` or
 * `process_`.
 *
 * @throws RangeError if a metric is not published. The message suggests the nearest published metric.
 */
export function metricsIn(expression: string): readonly string[] {
  const withoutStrings = expression.replace(/"(?:[^"\\]|\\.)*"/g, '""')
  const found = [...new Set(withoutStrings.match(/\b(?:bullpen[_:]|nodejs_|process_)\w+/g) ?? [])]
  for (const name of found) {
    if (PUBLISHED.includes(name)) continue
    const hint = nearest(name, PUBLISHED)
    throw new RangeError(`unknown metric ${name}${hint === undefined ? '' : `; did you mean ${hint}?`}`)
  }
  return found
}

/** The variables that every dashboard has. */
const NAMESPACE = 'namespace=~"$namespace"'
const JOB = 'job=~"$job"'

/** A string, which is skipped, or a metric with the brace that opens its matchers if it has any. */
const SELECTOR = /"(?:[^"\\]|\\.)*"|\b(?:bullpen[_:]|nodejs_|process_)\w+\{?/g

/** Restricts every metric of an expression to the namespace and the job that the reader of a dashboard has chosen. */
export function scoped(expression: string): string {
  return expression.replace(SELECTOR, (found) => {
    if (found.startsWith('"')) return found
    // The series that Prometheus records are sums over all jobs.
    const scope = found.includes(':') ? NAMESPACE : `${NAMESPACE}, ${JOB}`
    return found.endsWith('{') ? `${found}${scope}, ` : `${found}{${scope}}`
  })
}

/**
 * Returns an expression as Grafana sends it if the reader has chosen all values of each variable. `rateInterval` is the window of rates, in
 * Prometheus's notation.
 */
export function withAllChosen(expression: string, rateInterval: string): string {
  return scoped(expression).replaceAll('$__rate_interval', rateInterval).replaceAll(/\$\w+/g, '.*')
}
