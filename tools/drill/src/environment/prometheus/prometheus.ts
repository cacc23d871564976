// Runs a Prometheus that scrapes the processes of a drill, of which some may start and end during the drill, and queries it.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Sample {
  /** Unix time in seconds. */
  readonly at: number
  readonly value: number
}

export interface DrillPrometheus {
  /** Sets which addresses are scraped, and the labels that their series get. */
  scrape(urls: readonly string[], labels: Readonly<Record<string, string>>): void
  /** Returns the present value of each series. @throws Error if Prometheus rejects the expression or does not respond. */
  query(expression: string): Promise<readonly number[]>
  /** Returns the values of the only series over time. Times are in seconds. */
  history(
    expression: string,
    span: { readonly from: number; readonly to: number; readonly step: number },
  ): Promise<readonly Sample[]>
  close(): Promise<void>
}

type Start = (options: {
  readonly dir: string
  readonly targetsFile: string
  readonly interval: string
}) => Promise<{ readonly url: string; stop(): Promise<void> }>

interface Answer {
  readonly status: string
  readonly error?: string
  readonly data: { readonly result: readonly { readonly value?: Pair; readonly values?: readonly Pair[] }[] }
}
type Pair = readonly [at: number, value: string]

/** `intervalMs` is the time between two scrapes, and between two evaluations of the rules. */
export async function openPrometheus(intervalMs: number): Promise<DrillPrometheus> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../../scripts/prometheus/server.mjs', import.meta.url).href
  const { startPrometheus } = (await import(script)) as { startPrometheus: Start }
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-drill-prometheus-'))
  const targetsFile = join(dir, 'targets.json')
  writeFileSync(targetsFile, '[]')
  const { url, stop } = await startPrometheus({ dir, targetsFile, interval: `${Math.round(intervalMs)}ms` })

  const ask = async (path: string, parameters: Record<string, string>): Promise<Answer['data']['result']> => {
    const response = await fetch(`${url}/api/v1/${path}?${new URLSearchParams(parameters)}`)
    const { status, error, data } = (await response.json()) as Answer
    if (status !== 'success') throw new Error(`Prometheus rejects ${parameters['query']}: ${error}`)
    return data.result
  }
  return {
    scrape(urls, labels) {
      // Prometheus may read the file at any time, so it is replaced as a whole.
      const targets = urls.map((each) => new URL(each).host)
      writeFileSync(`${targetsFile}.new`, JSON.stringify([{ targets, labels }]))
      renameSync(`${targetsFile}.new`, targetsFile)
    },
    async query(expression) {
      const result = await ask('query', { query: expression })
      return result.flatMap(({ value }) => (value === undefined ? [] : Number(value[1])))
    },
    async history(expression, { from, to, step }) {
      const [series] = await ask('query_range', {
        query: expression,
        start: String(from),
        end: String(to),
        step: String(step),
      })
      return (series?.values ?? []).map(([at, value]) => ({ at, value: Number(value) }))
    },
    async close() {
      await stop()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}
