// `npm run pictures`: starts the example platform with Prometheus, runs a mixed load, and draws the pictures of the main panels.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, http } from '@bullpen/client'
import { LOAD_SECONDS, runMixedLoad } from './mixed-load.ts'
import { draw, PICTURES, type RangeSeries } from './pictures.ts'

interface Platform {
  up(): Promise<{ readonly apiUrl: string; readonly key: string; readonly prometheus: { readonly url: string } }>
  restart(name: string): Promise<void>
  down(): Promise<unknown>
}

interface PlatformOptions {
  readonly home: string
  readonly filesRoots: readonly string[]
  readonly observe: boolean
  readonly anyPorts: boolean
  readonly say: (line: string) => void
}

/** The scripts are untyped JavaScript, so they are imported by URL, which the compiler does not resolve. */
const script = new URL('../../../scripts/platform/platform.mjs', import.meta.url).href
const { createPlatform } = (await import(script)) as { createPlatform(options: PlatformOptions): Platform }

const folder = new URL('../../../docs/how-to/plots/', import.meta.url)
/** As often as the platform's Prometheus scrapes. */
const STEP_S = 5
/** Also shows how the load ends. */
const AFTERWARDS_S = 20

const home = mkdtempSync(join(tmpdir(), 'bullpen-pictures-'))
// What the platform reports is not of interest, because retries and dead tasks are part of the load.
const platform = createPlatform({ home, filesRoots: [home], observe: true, anyPorts: true, say: () => {} })
try {
  const { apiUrl, key, prometheus } = await platform.up()
  const client = createClient({ transport: http(apiUrl, key) })
  const from = Date.now()
  console.log(`The load takes ${LOAD_SECONDS} s.`)
  await runMixedLoad({ client, restart: (name) => platform.restart(name) })
  await sleep(1_000 * AFTERWARDS_S)
  const to = Date.now()
  await client.close()

  const ask = async (query: string): Promise<readonly RangeSeries[]> => {
    const range = { query, start: String(from / 1_000), end: String(to / 1_000), step: String(STEP_S) }
    const response = await fetch(`${prometheus.url}/api/v1/query_range?${new URLSearchParams(range)}`)
    const { status, error, data } = (await response.json()) as {
      status: string
      error?: string
      data: { result: readonly RangeSeries[] }
    }
    if (status !== 'success') throw new Error(`Prometheus rejects ${query}: ${error}`)
    return data.result
  }
  mkdirSync(folder, { recursive: true })
  for (const picture of PICTURES) {
    writeFileSync(new URL(`${picture.name}.svg`, folder), await draw(picture, from / 1_000, ask))
    console.log(`wrote docs/how-to/plots/${picture.name}.svg`)
  }
} finally {
  await platform.down()
  rmSync(home, { recursive: true, force: true })
}
