// Creates instruments from the metrics table, so that each name and label is written only once.
import { Counter, Gauge, type Registry } from 'prom-client'
import { FastCounter, FastHistogram } from './fast-metrics.ts'
import { type CounterName, type HistogramName, type LabelOf, METRICS, type MetricName } from './metrics-table.ts'

type GaugeName = Exclude<MetricName, CounterName | HistogramName>
export type LabelsOf<N extends MetricName> = Readonly<Record<LabelOf<N>, string>>

export function counter<N extends CounterName>(registry: Registry, name: N): Counter<LabelOf<N>> {
  return new Counter(configuration(registry, name))
}

export function gauge<N extends GaugeName>(registry: Registry, name: N): Gauge<LabelOf<N>> {
  return new Gauge(configuration(registry, name))
}

/** Creates a counter for the hot path. */
export function fastCounter<N extends CounterName>(name: N): FastCounter<LabelsOf<N>> {
  return new FastCounter({ name, help: METRICS[name].help })
}

/** Creates a histogram for the hot path. */
export function fastHistogram<N extends HistogramName>(name: N): FastHistogram<LabelsOf<N>> {
  return new FastHistogram({ name, help: METRICS[name].help, buckets: METRICS[name].buckets })
}

function configuration<N extends MetricName>(registry: Registry, name: N) {
  const row: { readonly help: string; readonly labels: readonly LabelOf<N>[] } = METRICS[name]
  return { name, help: row.help, labelNames: [...row.labels], registers: [registry] }
}
