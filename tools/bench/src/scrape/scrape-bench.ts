// Measures what a scrape of an API process costs Redis, with many queues of waiting tasks.
import { createApi } from '@bullpen/api'
import { openBroker } from '@bullpen/bullmq'
import { defineCatalogue, defineQueue, defineTask } from '@bullpen/contract'
import { createTaskId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { createRandomPool } from '@bullpen/engine/node'
import { Redis } from 'ioredis'
import { z } from 'zod'
import { startCpuTime } from '../measuring/cpu-time.ts'
import { untilReachable } from '../measuring/reachable.ts'

export interface ScrapeOptions {
  readonly redisUrl: string
  readonly queues: number
  /** How many tasks are waiting in each queue. */
  readonly waiting: number
  readonly scrapes: number
}

export interface ScrapeCost {
  readonly queues: number
  readonly waiting: number
  /** The commands that clients send in a scrape. */
  readonly commands: number
  /** The CPU time of Redis, and that of the API's process, in ms. */
  readonly redisMs: number
  readonly apiMs: number
  /** The size of the response. */
  readonly bytes: number
}

const NAMESPACE = 'scrape'
const KEY = 'bench-key-of-the-scrape'
const log = { debug() {}, info() {}, warn() {}, error: console.error }
/** The first scrapes open connections, load scripts and compile code. */
const WARM_UP = 5
const IN_PARALLEL = 500

/** Yields the cost with the given number of waiting tasks, and then the cost with ten times as many, which should be the same. */
export async function* benchScrape(options: ScrapeOptions): AsyncGenerator<ScrapeCost> {
  yield await measure(options)
  yield await measure({ ...options, waiting: 10 * options.waiting })
}

/** Returns a definition with everything for which there is a gauge. */
function taskOf(n: number) {
  const queue = defineQueue({ name: `queue-${n}`, limits: { maxTasks: 1_000_000 }, slo: { startWithin: '1m' } })
  return defineTask({ name: `bench.task-${n}`, queue, kind: 'short', input: z.object({}), retry: { budget: {} } })
}

async function measure({ redisUrl, queues, waiting, scrapes }: ScrapeOptions): Promise<ScrapeCost> {
  const redis = new Redis(redisUrl)
  await redis.flushall()
  const tasks = Array.from({ length: queues }, (_, n) => taskOf(n))
  await enqueue(redisUrl, tasks, waiting)
  const config = { redisUrl, namespace: NAMESPACE, keys: [KEY], port: 0, metricsPort: 0 }
  const [first, ...others] = tasks
  if (first === undefined) throw new RangeError('there are no queues')
  const api = await createApi({ catalogue: defineCatalogue(first, ...others), config, log })
  try {
    const { metricsUrl } = await api.listen()
    const scrape = async (): Promise<string> => (await fetch(metricsUrl)).text()
    for (let n = 0; n < WARM_UP; n++) await scrape()
    const commands = await commandsOf(redis, scrape)
    const used = await startCpuTime(redis)
    let text = ''
    for (let n = 0; n < scrapes; n++) text = await scrape()
    const cpu = await used()
    const perScrape = (us: number): number => Number((us / scrapes / 1_000).toFixed(2))
    const cost = { commands, redisMs: perScrape(cpu.redis), apiMs: perScrape(cpu.process) }
    return { queues, waiting, ...cost, bytes: Buffer.byteLength(text) }
  } finally {
    await api.close()
    await redis.flushall()
    redis.disconnect()
  }
}

async function enqueue(redisUrl: string, tasks: readonly ReturnType<typeof taskOf>[], waiting: number): Promise<void> {
  const queues = tasks.map(({ queue }) => queue)
  const broker = openBroker({ redisUrl, namespace: NAMESPACE, queues, sizeLimit: 65_536, log, leads: false })
  await untilReachable(broker)
  const random = createRandomPool()
  for (const task of tasks) {
    for (let left = waiting; left > 0; left -= IN_PARALLEL) {
      const some = Array.from({ length: Math.min(left, IN_PARALLEL) }, () => {
        const id = createTaskId(task.queue, Date.now(), random(ID_RANDOM_BYTES))
        return broker.enqueue(newTask(task, {}, {}, { id, enqueuedAt: Date.now(), correlationId: undefined }))
      })
      await Promise.all(some)
    }
  }
  await broker.close()
}

/** Counts the commands that clients send while `run` runs. Those that a script runs are not counted. */
async function commandsOf(redis: Redis, run: () => Promise<unknown>): Promise<number> {
  let count = 0
  const monitor = await redis.monitor()
  monitor.on('monitor', (_time: string, _command: readonly string[], source: string) => {
    if (source !== 'lua') count++
  })
  await run()
  monitor.disconnect()
  return count
}

export function describeScrape({ queues, waiting, commands, redisMs, apiMs, bytes }: ScrapeCost): string {
  return `scrape of ${queues} queues with ${waiting} waiting tasks each: ${commands} commands, ${redisMs} ms of CPU time of Redis and ${apiMs} ms of the API, ${bytes} bytes`
}
