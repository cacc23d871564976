// Runs the worker of one side of the benchmark `wait`: Bullpen's, or one of plain BullMQ. Both return the same result at once.
import { defineHandler } from '@bullpen/contract'
import { Worker } from 'bullmq'
import { catalogue, welcome } from '../enqueue/workload.ts'
import { partOptions, reportReady } from '../measuring/part.ts'

export interface WorkerOptions {
  readonly worker: WorkerName
  readonly redisUrl: string
  readonly namespace: string
}

/** How many tasks the worker runs at once. */
const SLOTS = 20

/** The workers. Each one has started when its function resolves. */
const WORKERS = {
  async bullpen({ redisUrl, namespace }: WorkerOptions): Promise<void> {
    // The peer doesn't load Bullpen's worker.
    const { createWorker } = await import('@bullpen/worker')
    const handlers = { 'bench.welcome': defineHandler(welcome, import.meta.url, () => ({})) }
    const config = { redisUrl, namespace, pools: { [welcome.queue]: SLOTS }, port: 0 }
    await createWorker({ catalogue, handlers, config }).start()
  },

  async bullmq({ redisUrl, namespace }: WorkerOptions): Promise<void> {
    const connection = { url: redisUrl }
    await new Worker(welcome.queue, async () => ({}), {
      ...{ connection, prefix: `{${namespace}}`, concurrency: SLOTS },
    }).waitUntilReady()
  },
} as const satisfies Record<string, (options: WorkerOptions) => Promise<void>>
type WorkerName = keyof typeof WORKERS

const options = partOptions<WorkerOptions>()
await WORKERS[options.worker](options)
reportReady(true, {})
