// Describes the rows of the benchmark `sustain`, and how they change over time.

/** The figures of one interval. */
export interface SustainRow {
  readonly seconds: number
  readonly enqueuedPerSecond: number
  readonly endedPerSecond: number
  /** The 99th percentiles, in ms. */
  readonly enqueueP99Ms: number
  readonly waitP99Ms: number
  readonly endP99Ms: number
  /** The share of a core that each of them uses. */
  readonly redisCores: number
  readonly producerCores: number
  readonly workerCores: number
  /** At the end of the interval. */
  readonly redisMiB: number
  readonly waiting: number
  /** Calls that failed because Redis did not respond in time, or the task did not end in time. */
  readonly failedCalls: number
}

export type SustainResult =
  | ({ readonly bench: 'sustain'; readonly row: number } & SustainRow)
  | {
      readonly bench: 'sustain'
      /** Over the whole time. */
      readonly enqueuedPerSecond: number
      readonly failedCalls: number
      readonly p99Ms: Readonly<Record<Time, number>>
      /** By how much each figure changes per minute, as a percentage of its mean. Missing if there are not enough rows. */
      readonly changePerMinute: Readonly<Partial<Record<keyof SustainRow, number>>>
    }

export type Time = 'enqueue' | 'wait' | 'end'

/** How long the platform needs until its memory is constant, because ended tasks are kept for a minute. */
const SETTLED_S = 120
const TRENDS = ['enqueueP99Ms', 'waitP99Ms', 'endP99Ms', 'redisCores', 'redisMiB', 'waiting'] as const

/** Returns the change of each figure per minute, as a percentage of its mean, by the method of least squares. */
export function trendsOf(
  rows: readonly SustainRow[],
  interval: number,
): Readonly<Partial<Record<keyof SustainRow, number>>> {
  const settled = rows.slice(Math.min(Math.ceil(SETTLED_S / interval), Math.floor(rows.length / 2)))
  if (settled.length < 3) return {}
  const mean = (values: readonly number[]): number => values.reduce((sum, each) => sum + each, 0) / values.length
  const minutes = settled.map((_, i) => (i * interval) / 60)
  const middle = mean(minutes)
  const spread = minutes.reduce((sum, minute) => sum + (minute - middle) ** 2, 0)
  return Object.fromEntries(
    TRENDS.map((figure) => {
      const values = settled.map((row) => row[figure])
      const slope = values.reduce((sum, value, i) => sum + value * ((minutes[i] ?? 0) - middle), 0) / spread
      return [figure, (100 * slope) / mean(values)]
    }),
  )
}

export function describeSustain(result: SustainResult): string {
  if ('row' in result) return rowText(result)
  const { p99Ms, changePerMinute } = result
  const trends = Object.entries(changePerMinute).map(([figure, percent]) => `${figure} ${signed(percent)}%`)
  return [
    `sustain: ${Math.round(result.enqueuedPerSecond)} tasks/s enqueued, ${result.failedCalls} calls failed; p99 over the whole time: enqueue ${ms(p99Ms.enqueue)}, wait ${ms(p99Ms.wait)}, end ${ms(p99Ms.end)}`,
    `change per minute: ${trends.length === 0 ? 'too few rows' : trends.join(', ')}`,
  ].join('\n')
}

function rowText(row: SustainRow & { readonly row: number }): string {
  const head =
    row.row === 1
      ? 'sustain  in/s  out/s  p99: enqueue      wait       end   cores: Redis producer workers  Redis MiB  waiting  failed\n'
      : ''
  return [
    `${head}${String(row.row).padStart(7)}`,
    Math.round(row.enqueuedPerSecond).toString().padStart(6),
    Math.round(row.endedPerSecond).toString().padStart(7),
    ms(row.enqueueP99Ms).padStart(14),
    ms(row.waitP99Ms).padStart(10),
    ms(row.endP99Ms).padStart(10),
    row.redisCores.toFixed(2).padStart(15),
    row.producerCores.toFixed(2).padStart(9),
    row.workerCores.toFixed(2).padStart(8),
    row.redisMiB.toFixed(0).padStart(11),
    String(row.waiting).padStart(9),
    String(row.failedCalls).padStart(8),
  ].join('')
}

function ms(value: number): string {
  return `${value.toFixed(1)} ms`
}

function signed(percent: number): string {
  return `${percent < 0 ? '' : '+'}${percent.toFixed(1)}`
}
