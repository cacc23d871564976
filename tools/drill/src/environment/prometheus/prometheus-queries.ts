// Queries a Prometheus over HTTP.
import type { RateSample } from '../../ledger/observed-rates.ts'

export interface PrometheusQueries {
  /** Returns the sum of the values of all series at this moment, and NaN if there are none. */
  sum(expression: string): Promise<number>
  /** Returns the values of an expression with a single series, at steps of some seconds. The times are in ms since 1970. */
  over(
    expression: string,
    range: { readonly from: number; readonly to: number; readonly stepS: number },
  ): Promise<readonly RateSample[]>
}

interface Answer {
  readonly status: string
  readonly error?: string
  readonly data: { readonly result: readonly { readonly value: Pair; readonly values: readonly Pair[] }[] }
}

/** A time in seconds since 1970, and a value. */
type Pair = readonly [number, string]

export function prometheusQueries(url: string): PrometheusQueries {
  const ask = async (path: string, parameters: Readonly<Record<string, string>>): Promise<Answer['data']['result']> => {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const { status, error, data } = (await response.json()) as Answer
    if (status !== 'success') throw new Error(`Prometheus rejects ${parameters['query']}: ${error}`)
    return data.result
  }
  return {
    async sum(expression) {
      const values = (await ask('query', { query: expression })).map(({ value }) => Number(value[1]))
      return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0)
    },
    async over(expression, { from, to, stepS }) {
      const range = { start: String(from / 1_000), end: String(to / 1_000), step: String(stepS) }
      const [series] = await ask('query_range', { query: expression, ...range })
      return (series?.values ?? []).map(([at, value]) => ({ at, perSecond: Number(value) }))
    },
  }
}
