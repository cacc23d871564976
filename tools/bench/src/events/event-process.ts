// Runs an API or a worker in a process of its own, for the benchmark `events`.
import { createApi } from '@bullpen/api'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

/** A task that ends at once. */
export const brief = defineTask({ name: 'bench.events', queue: 'events', input: z.object({}) })
export const catalogue = defineCatalogue(brief)

export interface EventProcess {
  readonly role: 'api' | 'worker'
  readonly redisUrl: string
  readonly namespace: string
  readonly key: string
}

/** What a process reports when it is asked. */
export interface Usage {
  readonly rssBytes: number
  /** Since the process has started, in µs. */
  readonly cpuMicros: number
}

if (process.argv[1] === import.meta.filename) {
  const { role, redisUrl, namespace, key } = JSON.parse(process.argv[2] ?? '') as EventProcess
  // If the benchmark dies, its processes must not be left behind.
  process.once('disconnect', () => process.exit(3))
  process.on('message', () => {
    const { user, system } = process.cpuUsage()
    process.send?.({ rssBytes: process.memoryUsage.rss(), cpuMicros: user + system } satisfies Usage)
  })
  const config = { redisUrl, namespace, logLevel: 'warn' as const, port: 0 }
  if (role === 'api') {
    const api = await createApi({ catalogue, config: { ...config, keys: [key], metricsPort: 0 } })
    process.send?.((await api.listen()).url)
  } else {
    const handlers = { 'bench.events': defineHandler(brief, import.meta.url, async () => {}) }
    await createWorker({ catalogue, handlers, config: { ...config, pools: { events: 50 } } }).start()
    process.send?.('ready')
  }
}
