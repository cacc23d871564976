/**
 * Counters and histograms for the hot path. prom-client builds a key from the labels at every call, which costs ten times as
 * much as the counting itself. Here, a caller requests a series once and then increments plain numbers. These metrics are
 * written in Prometheus's text format after those of prom-client.
 * Format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 */

type Labels = Readonly<Record<string, string>>

/** One time series of a counter. */
export interface Count {
  count: number
  /** Whether the series is published before it has counted anything. */
  isShownAtZero: boolean
}

/** Publishes a series from now on, even if it has not counted anything. */
export function fromZero(tally: Count): Count {
  tally.isShownAtZero = true
  return tally
}

export class FastCounter<L extends Labels = Labels> {
  readonly #name: string
  readonly #help: string
  readonly #series: { readonly labels: L; readonly tally: Count }[] = []

  constructor({ name, help }: { readonly name: string; readonly help: string }) {
    this.#name = name
    this.#help = help
  }

  /** Call it once for each combination of labels. */
  series(labels: L): Count {
    const tally = { count: 0, isShownAtZero: false }
    this.#series.push({ labels, tally })
    return tally
  }

  /** Like {@link series}, for a series that is published before it has counted anything. */
  seriesFromZero(labels: L): Count {
    return fromZero(this.series(labels))
  }

  /** Returns the counter in Prometheus's text format, omitting series that have not counted anything yet unless they begin at 0. */
  exposition(): string {
    const shown = this.#series.filter(({ tally }) => tally.isShownAtZero || tally.count > 0)
    const lines = shown.map(({ labels, tally }) => sample(this.#name, labels, tally.count))
    return [header(this.#name, this.#help, 'counter'), ...lines].join('\n')
  }
}

/** One time series of a histogram. */
export class Distribution {
  readonly #bounds: readonly number[]
  /** The number of values in each bucket. The last element counts the values above all bounds. */
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  /** Adds a value. NaN and negative values, which can result from comparing two clocks, count as zero. */
  observe(measured: number): void {
    const value = Number.isFinite(measured) ? Math.max(measured, 0) : 0
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++
    this.counts[bucket] = (this.counts[bucket] as number) + 1
    this.sum += value
  }
}

export class FastHistogram<L extends Labels = Labels> {
  readonly #name: string
  readonly #help: string
  readonly #bounds: readonly number[]
  readonly #series: { readonly labels: L; readonly tally: Distribution }[] = []

  constructor({
    name,
    help,
    buckets,
  }: { readonly name: string; readonly help: string; readonly buckets: readonly number[] }) {
    this.#name = name
    this.#help = help
    this.#bounds = buckets
  }

  /** Call it once for each combination of labels. */
  series(labels: L): Distribution {
    const tally = new Distribution(this.#bounds)
    this.#series.push({ labels, tally })
    return tally
  }

  /** Returns the histogram in Prometheus's text format, omitting series that have not observed anything yet. */
  exposition(): string {
    return [header(this.#name, this.#help, 'histogram'), ...this.#series.flatMap((each) => this.#samples(each))].join(
      '\n',
    )
  }

  #samples({ labels, tally }: { readonly labels: L; readonly tally: Distribution }): readonly string[] {
    let count = 0
    const buckets = [...tally.counts].map((inBucket, bucket) => {
      count += inBucket
      return sample(`${this.#name}_bucket`, { ...labels, le: String(this.#bounds[bucket] ?? '+Inf') }, count)
    })
    if (count === 0) return []
    return [...buckets, sample(`${this.#name}_sum`, labels, tally.sum), sample(`${this.#name}_count`, labels, count)]
  }
}

function header(name: string, help: string, type: 'counter' | 'histogram'): string {
  return `# HELP ${name} ${escaped(help)}\n# TYPE ${name} ${type}`
}

function sample(name: string, labels: Labels, value: number): string {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text).replaceAll('"', '\\"')}"`)
  return pairs.length === 0 ? `${name} ${value}` : `${name}{${pairs.join(',')}} ${value}`
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
