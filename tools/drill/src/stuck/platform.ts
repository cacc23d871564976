// Opens the platform of one cause of the drill `stuck`: an API and a worker behind a proxy to Redis, a Prometheus that scrapes
// both, and the command line.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Client } from '@bullpen/client'
import { ALERTS } from '@bullpen/telemetry/alerts'
import { type FaultProxy, faultProxy } from '@bullpen/testkit'
import { startApi } from '../environment/drill-api.ts'
import type { DrillSetup } from '../environment/drill-setup.ts'
import type { WorkerProcess } from '../environment/fleet.ts'
import { openPrometheus } from '../environment/prometheus/prometheus.ts'
import { work } from '../programs/catalogue.ts'

export interface Platform extends Pick<DrillSetup, 'broker' | 'untilIdle' | 'records'> {
  readonly client: Client
  /** The proxy between Redis and both the API and the worker. The drill's own broker does not use it. */
  readonly proxy: FaultProxy
  /** Starts the worker, or another one after it has ended. Its metrics are always at the same address. */
  startWorker(): Promise<WorkerProcess>
  /** Runs a command of the command line, and returns what it prints. */
  bullpen(...command: readonly string[]): Promise<string>
  /** Returns the alerts whose condition holds now, whatever the time for which it has to hold. */
  alerts(): Promise<readonly string[]>
  close(): Promise<void>
}

const SLOTS = 2
const SCRAPE_MS = 1_000
const CLI = fileURLToPath(new URL('../../../../packages/cli/src/main.ts', import.meta.url))

export async function openPlatform(setup: DrillSetup): Promise<Platform> {
  await using opened = new AsyncDisposableStack()
  const { redisUrl, namespace, fleet, broker, untilIdle, records } = setup
  const proxy = opened.adopt(await faultProxy(redisUrl), (each) => each.close())
  const api = opened.adopt(await startApi({ redisUrl: proxy.url, namespace }), (each) => each.close())
  const port = await freePort()
  const prometheus = opened.adopt(await openPrometheus(SCRAPE_MS), (each) => each.close())
  prometheus.scrape([api.metricsUrl, `http://127.0.0.1:${port}`], { namespace })
  const env = { PATH: process.env['PATH'], BULLPEN_API: api.url, BULLPEN_KEY: api.key }
  const isTrue = async (expression: string): Promise<boolean> => (await prometheus.query(expression)).length > 0
  const kept = opened.move()
  return {
    ...{ broker, untilIdle, records, proxy },
    client: api.client(),
    startWorker: () => fleet.start({ redisUrl: proxy.url, pools: { [work.queue]: SLOTS }, port }),
    bullpen: (...command) =>
      new Promise((resolve) => {
        execFile(process.execPath, [CLI, ...command], { env }, (_error, out, errors) => resolve(`${out}${errors}`))
      }),
    async alerts() {
      const held = await Promise.all(ALERTS.map(async ({ name, expr }) => ((await isTrue(expr)) ? [name] : [])))
      return held.flat()
    },
    close: () => kept.disposeAsync(),
  }
}

async function freePort(): Promise<number> {
  // The scripts are JavaScript without types, so they are imported by URL, which the compiler does not resolve.
  const script = new URL('../../../../scripts/system/ports.mjs', import.meta.url).href
  const ports = (await import(script)) as { freePort(): Promise<number> }
  return ports.freePort()
}
