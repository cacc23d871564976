// Starts a Prometheus for a single test, which scrapes every 500 ms, and queries it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'

/** Also limits how long a scrape may take. */
const INTERVAL = '500ms'

export interface Sample {
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

interface Rule {
  readonly type: 'alerting' | 'recording'
  readonly name: string
  /** `unknown` until Prometheus has evaluated the rule once. */
  readonly health: string
  /** Undefined if the rule is not an alert. */
  readonly state?: string
}

interface Answer {
  readonly status: string
  readonly error?: string
  readonly data: unknown
}

type StartPrometheus = (options: {
  readonly dir: string
  readonly targets: readonly string[]
  readonly interval: string
}) => Promise<{ readonly url: string; stop(): Promise<void> }>

/** The server and its data are removed after the test. `metricsUrls` are the addresses that it scrapes. */
export async function startPrometheus(metricsUrls: readonly string[]) {
  // The scripts are untyped JavaScript, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../scripts/prometheus/server.mjs', import.meta.url).href
  const { startPrometheus: start } = (await import(script)) as { startPrometheus: StartPrometheus }
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-prometheus-'))
  const { url, stop } = await start({ dir, targets: metricsUrls.map((each) => new URL(each).host), interval: INTERVAL })
  onTestFinished(async () => {
    await stop()
    rmSync(dir, { recursive: true, force: true })
  })

  const ask = async (path: string): Promise<unknown> => {
    const { status, error, data } = (await (await fetch(`${url}${path}`)).json()) as Answer
    if (status !== 'success') throw new Error(`Prometheus rejects ${decodeURIComponent(path)}: ${error}`)
    return data
  }
  return {
    /** Returns the value of each series at this moment. @throws if Prometheus rejects the expression. */
    async query(expression: string): Promise<readonly Sample[]> {
      const data = await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`)
      const { result } = data as { result: readonly { metric: Sample['labels']; value: readonly [number, string] }[] }
      return result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }))
    },
    /** Returns the rules: those of type `alerting`, with their states, and those of type `recording`. */
    async rules(): Promise<readonly Rule[]> {
      const data = (await ask('/api/v1/rules')) as { groups: readonly { rules: readonly Rule[] }[] }
      return data.groups.flatMap((group) => group.rules)
    },
  }
}
