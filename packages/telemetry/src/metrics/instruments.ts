// Makes instruments from the metrics table, so that no name or label is written twice.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { TallyCounter, TallyHistogram } from './fast-metrics.ts'
import { type LabelOf, METRICS, type MetricName, type MetricRow } from './metrics-table.ts'

type NamesOfType<T extends MetricRow['type']> = {
  [N in MetricName]: (typeof METRICS)[N]['type'] extends T ? N : never
}[MetricName]
type CounterName = NamesOfType<'counter'>
type GaugeName = NamesOfType<'gauge'>
type HistogramName = NamesOfType<'histogram'>

export function counter<N extends CounterName>(registry: Registry, name: N): Counter<LabelOf<N>> {
  return new Counter(configuration(registry, name))
}

export function gauge<N extends GaugeName>(registry: Registry, name: N): Gauge<LabelOf<N>> {
  return new Gauge(configuration(registry, name))
}

export function histogram<N extends HistogramName>(registry: Registry, name: N): Histogram<LabelOf<N>> {
  return new Histogram(withBuckets(registry, name))
}

/** For the hot path: see {@link TallyCounter}. */
export function tallyCounter<N extends CounterName>(registry: Registry, name: N): TallyCounter<LabelOf<N>> {
  return new TallyCounter(configuration(registry, name))
}

/** For the hot path: see {@link TallyHistogram}. */
export function tallyHistogram<N extends HistogramName>(registry: Registry, name: N): TallyHistogram<LabelOf<N>> {
  return new TallyHistogram(withBuckets(registry, name))
}

function configuration<N extends MetricName>(registry: Registry, name: N) {
  const row: { readonly help: string; readonly labels: readonly LabelOf<N>[] } = METRICS[name]
  return { name, help: row.help, labelNames: [...row.labels], registers: [registry] }
}

function withBuckets<N extends HistogramName>(registry: Registry, name: N) {
  return { ...configuration(registry, name), buckets: [...METRICS[name].buckets] }
}
