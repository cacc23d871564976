// Counters and histograms that are plain numbers while tasks run and are read at a scrape: prom-client's own children
// make a key from their labels at every call, which costs ten times as much.
import { Counter, Histogram, type LabelValues } from 'prom-client'

/** One series of a counter. */
export interface Count {
  count: number
}

/** A counter whose series are made once and then counted up by whoever holds them. */
export class TallyCounter<L extends string> extends Counter<L> {
  readonly #series: { readonly labels: LabelValues<L>; readonly tally: Count }[] = []

  series(labels: LabelValues<L>): Count {
    const tally = { count: 0 }
    this.#series.push({ labels, tally })
    return tally
  }

  override async get(): ReturnType<Counter<L>['get']> {
    // a series that never counted is left out, as prom-client does
    const counted = this.#series.filter(({ tally }) => tally.count > 0)
    return { ...(await super.get()), values: counted.map(({ labels, tally }) => ({ labels, value: tally.count })) }
  }
}

/** One series of a histogram. */
export class Distribution {
  readonly #bounds: readonly number[]
  /** One more than there are bounds: the last holds what is above all of them. */
  readonly counts: Float64Array
  sum = 0

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds
    this.counts = new Float64Array(bounds.length + 1)
  }

  /** What is below zero, as between two clocks, counts as zero; so does what is no number. */
  observe(measured: number): void {
    const value = Number.isFinite(measured) ? Math.max(measured, 0) : 0
    const bounds = this.#bounds
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++
    this.counts[bucket] = (this.counts[bucket] as number) + 1
    this.sum += value
  }
}

/** A histogram whose series are made once and then observed by whoever holds them. */
export class TallyHistogram<L extends string> extends Histogram<L> {
  readonly #name: string
  /** Lends name, help and type: this class's own `get` would lead back here. */
  readonly #plain: Histogram<L>
  readonly #bounds: readonly number[]
  readonly #series: { readonly labels: LabelValues<L>; readonly tally: Distribution }[] = []

  constructor(configuration: ConstructorParameters<typeof Histogram<L>>[0] & { readonly buckets: number[] }) {
    super(configuration)
    this.#name = configuration.name
    this.#plain = new Histogram({ ...configuration, registers: [] })
    this.#bounds = configuration.buckets
  }

  series(labels: LabelValues<L>): Distribution {
    const tally = new Distribution(this.#bounds)
    this.#series.push({ labels, tally })
    return tally
  }

  override async get(): ReturnType<Histogram<L>['get']> {
    return { ...(await this.#plain.get()), values: this.#series.flatMap((each) => this.#values(each)) }
  }

  /** The registry asks for this form, where a histogram has it, before it asks for `get`. */
  getForPromString(): ReturnType<Histogram<L>['get']> {
    return this.get()
  }

  #values({ labels, tally }: { readonly labels: LabelValues<L>; readonly tally: Distribution }) {
    let count = 0
    const buckets = [...tally.counts].map((inBucket, bucket) => {
      count += inBucket
      const le = this.#bounds[bucket] ?? '+Inf'
      return { metricName: `${this.#name}_bucket`, labels: { ...labels, le }, value: count }
    })
    if (count === 0) return []
    return [
      ...buckets,
      { metricName: `${this.#name}_sum`, labels, value: tally.sum },
      { metricName: `${this.#name}_count`, labels, value: count },
    ]
  }
}
