// Runs several idle workers in one process, for the benchmark `idle`. A process shares its Redis connections by URL. The URLs of the
// workers therefore differ in the number of blanks at their end, so that each worker has its own connections and threads, as it would
// in a separate process.
import { pathToFileURL } from 'node:url'
import { Worker } from 'bullmq'
import { z } from 'zod'
import { blockedQueue } from './blocked-tasks.ts'

export interface IdleWorkers {
  /** The checkout of Bullpen to run, or 'bullmq' for plain BullMQ with its default settings. */
  readonly side: string
  readonly redisUrl: string
  readonly namespace: string
  /** The first worker's number, and the number of workers. */
  readonly first: number
  readonly workers: number
  readonly queues: number
  /** Whether no task of the first queue may start (./blocked-tasks.ts). */
  readonly blocks: boolean
}

/** The name of the i-th queue. */
export const nameOf = (i: number): string => `idle${i}`

type Contract = typeof import('@bullpen/contract')
type BullpenWorker = typeof import('@bullpen/worker')

if (process.argv[1] === import.meta.filename) {
  const { side, redisUrl, namespace, first, workers, queues, blocks } = JSON.parse(process.argv[2] ?? '') as IdleWorkers
  const names = Array.from({ length: queues }, (_, i) => nameOf(i))
  const urls = Array.from({ length: workers }, (_, i) => redisUrl + ' '.repeat(first + i))
  // If the benchmark dies, its workers must not be left behind.
  process.once('disconnect', () => process.exit(3))
  if (side === 'bullmq')
    await Promise.all(urls.flatMap((url) => names.map((queue) => startPlain(url, queue, namespace))))
  else await startBullpen(side, { urls, queues: names, namespace, blocks })
  process.send?.('ready')
}

async function startPlain(url: string, queue: string, prefix: string): Promise<void> {
  const worker = new Worker(queue, async () => {}, { connection: { url }, prefix })
  worker.on('error', console.error)
  await worker.waitUntilReady()
}

interface Started {
  readonly urls: readonly string[]
  readonly queues: readonly string[]
  readonly namespace: string
  readonly blocks: boolean
}

async function startBullpen(checkout: string, { urls, queues, namespace, blocks }: Started): Promise<void> {
  const load = async (name: string): Promise<unknown> =>
    import(pathToFileURL(`${checkout}/packages/${name}/src/index.ts`).href)
  const { defineCatalogue, defineHandler, defineQueue, defineTask } = (await load('contract')) as Contract
  const { createWorker } = (await load('worker')) as BullpenWorker
  const schemas = { input: z.object({}), output: z.object({}) }
  const tasks = queues.map((name, i) => {
    const queue = blocks && i === 0 ? defineQueue(blockedQueue(name)) : name
    return defineTask({ name: `idle.${name}`, queue, ...schemas })
  })
  const handlers = Object.fromEntries(
    tasks.map((task) => [task.name, defineHandler(task, import.meta.url, async () => ({}))]),
  )
  // The compiler cannot determine the number of tasks.
  const catalogue = Reflect.apply(defineCatalogue, undefined, tasks)
  const pools = Object.fromEntries(queues.map((queue) => [queue, 2]))
  for (const redisUrl of urls) {
    const config = { redisUrl, namespace, pools, port: 0, logLevel: 'warn' as const }
    await createWorker({ catalogue, handlers, config } as never).start()
  }
}
