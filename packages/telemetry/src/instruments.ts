// Makes prom-client's instruments from the metrics table, so that no name or label is written twice.
import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { type LabelOf, METRICS, type MetricName, type MetricRow } from './metrics-table.ts'

type NamesOfType<T extends MetricRow['type']> = {
  [N in MetricName]: (typeof METRICS)[N]['type'] extends T ? N : never
}[MetricName]

export function counter<N extends NamesOfType<'counter'>>(registry: Registry, name: N): Counter<LabelOf<N>> {
  return new Counter(configuration(registry, name))
}

export function gauge<N extends NamesOfType<'gauge'>>(registry: Registry, name: N): Gauge<LabelOf<N>> {
  return new Gauge(configuration(registry, name))
}

export function histogram<N extends NamesOfType<'histogram'>>(registry: Registry, name: N): Histogram<LabelOf<N>> {
  return new Histogram({ ...configuration(registry, name), buckets: [...METRICS[name].buckets] })
}

function configuration<N extends MetricName>(registry: Registry, name: N) {
  const row: { readonly help: string; readonly labels: readonly LabelOf<N>[] } = METRICS[name]
  return { name, help: row.help, labelNames: [...row.labels], registers: [registry] }
}
