// Finds the metrics that a PromQL expression reads, and refuses those that nobody publishes.
import { nearest } from '@bullpen/contract/internal'
import { METRICS, PROCESS_METRICS } from '../metrics/metrics-table.ts'

const PUBLISHED: readonly string[] = [
  ...Object.entries(METRICS).flatMap(([name, { type }]) =>
    type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  ),
  ...PROCESS_METRICS,
]

/**
 * The metrics in an expression, each once. Ours and the process's start with a known word, which is how they are told
 * from functions and labels.
 *
 * @throws RangeError for one that no table lists, naming the nearest that is.
 */
export function metricsIn(expression: string): readonly string[] {
  const withoutStrings = expression.replace(/"(?:[^"\\]|\\.)*"/g, '""')
  const found = [...new Set(withoutStrings.match(/\b(?:bullpen|nodejs|process)_\w+/g) ?? [])]
  for (const name of found) {
    if (PUBLISHED.includes(name)) continue
    const hint = nearest(name, PUBLISHED)
    throw new RangeError(`no metric is named ${name}${hint === undefined ? '' : `; did you mean ${hint}?`}`)
  }
  return found
}
